"""`cv2.mixChannels`."""
