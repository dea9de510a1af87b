"""`cv2.normalize`."""
