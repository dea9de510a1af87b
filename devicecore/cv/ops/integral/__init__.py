"""`cv2.integral`."""
