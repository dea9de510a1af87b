"""`cv2.GaussianBlur`."""
