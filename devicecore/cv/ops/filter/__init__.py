"""`cv2.filter2D`, `sepFilter2D`, `Sobel`, `Scharr` and `Laplacian`."""
