"""`cv2.medianBlur`."""
