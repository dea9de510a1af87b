"""`cv2.min`, `max`, `compare` and `inRange`."""
