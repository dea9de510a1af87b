"""Triton's kernels of color conversions."""
