"""What the torch kernels of several functions share; see each module."""
