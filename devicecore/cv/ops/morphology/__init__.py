"""`cv2.erode`, `dilate` and `morphologyEx`."""
