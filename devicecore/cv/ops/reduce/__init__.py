"""`cv2.reduce`."""
