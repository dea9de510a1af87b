"""`cv2.dft` and `cv2.idft`."""
