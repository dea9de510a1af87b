"""Triton kernels of color conversions."""
