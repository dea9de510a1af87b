"""`cv2.warpAffine` and `cv2.warpPerspective`."""
