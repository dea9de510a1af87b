"""`cv2.flip`, `rotate` and `transpose`."""
