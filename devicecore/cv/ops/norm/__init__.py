"""`cv2.norm`."""
