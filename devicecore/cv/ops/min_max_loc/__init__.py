"""`cv2.minMaxLoc`."""
