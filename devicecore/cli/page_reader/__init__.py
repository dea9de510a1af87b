"""Reading the text of a page: detection and recognition with the PP-OCR models."""
