"""Kernels in the language of Triton."""
