"""Loaders whose workers record what a plan names, and whose own process computes it."""
