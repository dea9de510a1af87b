"""OpenCV's tables between RGB and Lab or Luv."""
