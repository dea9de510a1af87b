"""`cv2.resize`."""
