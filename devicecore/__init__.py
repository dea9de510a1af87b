"""Find the accelerators that really work, say why the others do not, and run kernels on them."""

__version__ = "0.1.0"
