"""`cv2.split`, `merge`, `extractChannel` and `insertChannel`."""
