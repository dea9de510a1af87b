"""The inverse matrix that a warp samples its source with, and how far it reaches."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import cv2
import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Matrix = NDArray[np.float64]

_FLOATS = frozenset({"float32", "float64"})
# Beyond this, OpenCV's coordinates are no longer sure to be whole numbers of 32 bits.
_FARTHEST = float(1 << 30)
# What float32 may make of a denominator, as a part of its terms.
_ROUNDING = 1e-6


def source_matrix(matrix: Any, rows: int, *, is_inverse: bool) -> Matrix:
    """Return what leads from a pixel of the result to its place in the source, rounded to float32.

    Args:
        matrix: The caller's.
        rows: How many it has to have: 2 for an affine map, 3 for a perspective one.
        is_inverse: Whether it is this matrix already; otherwise it is inverted.

    Raises:
        TypeError: It is no matrix of floats.
        ValueError: It has another shape, or numbers that are not finite.
    """
    if not isinstance(matrix, np.ndarray) or matrix.dtype.name not in _FLOATS:
        raise TypeError(matrix)
    if matrix.shape != (rows, 3):
        raise ValueError(matrix)
    found: Any = matrix.astype(np.float64)
    if not is_inverse:
        with np.errstate(all="ignore"):
            # The larger one by OpenCV itself, whose closed form has its own order of products.
            found = _inverted_affine(found) if rows == 2 else cv2.invert(found)[1]
    with np.errstate(all="ignore"):
        single: Matrix = found.astype(np.float32).astype(np.float64)
    if not np.isfinite(single).all():
        raise ValueError(matrix)
    return single


def _inverted_affine(matrix: Matrix) -> Matrix:
    (a, b, c), (d, e, f) = matrix
    determinant = a * e - b * d
    scale = 1.0 / determinant if determinant != 0 else 0.0
    a, b, d, e = e * scale, b * -scale, d * -scale, a * scale
    return np.array([[a, b, -a * c - b * f], [d, e, -d * c - e * f]])


def is_bounded(matrix: Matrix, width: int, height: int) -> bool:
    """Return whether each pixel of a result of that size has a place that OpenCV can count to."""
    right, bottom = width - 1, height - 1
    corners = np.array([(0, 0, 1), (right, 0, 1), (0, bottom, 1), (right, bottom, 1)], np.float64)
    farthest = np.abs(corners @ matrix[:2].T).max()
    if len(matrix) == 2:
        return bool(farthest < _FARTHEST)
    below = corners @ matrix[2]
    terms = np.abs(matrix[2]) @ (right, bottom, 1)
    nearest = np.abs(below).min() - _ROUNDING * terms
    has_one_sign = (below > 0).all() or (below < 0).all()
    return bool(has_one_sign and nearest > 0 and farthest / nearest < _FARTHEST)
