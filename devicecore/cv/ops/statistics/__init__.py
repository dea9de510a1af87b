"""`cv2.sumElems`, `mean`, `meanStdDev` and `countNonZero`."""
