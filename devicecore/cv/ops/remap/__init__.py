"""`cv2.remap`."""
