"""The kernels of `devicecore.cv.preprocess`."""
