"""`cv2.warpPolar`."""
