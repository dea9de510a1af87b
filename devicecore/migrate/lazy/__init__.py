"""Frames whose calls are recorded first, and computed together on a device."""
