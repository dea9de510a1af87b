"""`cv2.addWeighted` and `cv2.convertScaleAbs`."""
