"""`cv2.pyrDown` and `cv2.pyrUp`."""
