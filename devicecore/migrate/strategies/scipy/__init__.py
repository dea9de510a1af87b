"""Computes functions of SciPy by torch."""
