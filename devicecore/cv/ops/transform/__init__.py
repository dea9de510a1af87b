"""`cv2.transform` and `cv2.perspectiveTransform`."""
