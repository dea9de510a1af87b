"""Triton functions that kernels of several OpenCV functions call."""
