"""`cv2.calcHist` and `cv2.equalizeHist`."""
