"""`cv2.add`, `subtract`, `absdiff`, `multiply` and `divide`."""
