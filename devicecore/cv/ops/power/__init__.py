"""`cv2.pow`, `sqrt`, `exp`, `log` and `magnitude`."""
