"""`cv2.CLAHE.apply`."""
