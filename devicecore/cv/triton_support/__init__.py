"""Helpers that the Triton kernels of several functions share: launches, strips, gathers."""
