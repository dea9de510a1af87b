"""Measures a model on a device: its parts, for ``devicecore bench``."""
