"""Computes functions of NumPy by torch."""
