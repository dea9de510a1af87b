"""Index and weight tables, as OpenCV computes them; nothing here knows torch."""
