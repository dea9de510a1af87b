"""Functions of NumPy that torch computes."""
