"""Records the calls of a frame, and computes them together on a device."""
