"""What computes functions of librosa."""
