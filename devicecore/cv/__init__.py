"""OpenCV's functions on devices."""
