"""`cv2.adaptiveThreshold`."""
