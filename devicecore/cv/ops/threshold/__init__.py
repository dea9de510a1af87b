"""`cv2.threshold`."""
