"""Helpers that the torch kernels of several functions share."""
