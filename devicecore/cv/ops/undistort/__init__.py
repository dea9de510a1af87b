"""`cv2.undistort`."""
