"""What computes functions of numpy that a plan names."""
