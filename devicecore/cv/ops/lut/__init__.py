"""`cv2.LUT` and `cv2.applyColorMap`."""
