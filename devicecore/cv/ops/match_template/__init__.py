"""`cv2.matchTemplate`."""
