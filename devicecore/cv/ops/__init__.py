"""OpenCV's functions as operations on tensors of torch, and how each call is planned."""
