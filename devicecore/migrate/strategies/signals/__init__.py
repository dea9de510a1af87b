"""What computes functions of `scipy.signal`."""
