"""`DeviceLoader`: workers record the calls of samples, the loader computes them by the batch."""
