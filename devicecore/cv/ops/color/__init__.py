"""`cv2.cvtColor`."""
