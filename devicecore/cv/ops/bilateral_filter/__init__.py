"""`cv2.bilateralFilter`."""
