"""What computes pixels of other packages than OpenCV."""
