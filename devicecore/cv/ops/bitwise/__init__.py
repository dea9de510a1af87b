"""`cv2.bitwise_and`, `bitwise_or`, `bitwise_xor` and `bitwise_not`."""
