"""`cv2.copyMakeBorder`."""
