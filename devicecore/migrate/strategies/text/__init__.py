"""What computes how similar vectors are, such as those that stand for texts."""
