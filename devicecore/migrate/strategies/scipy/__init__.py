"""Functions of SciPy that torch computes."""
