"""`cv2.blur` and `cv2.boxFilter`."""
