"""Where `cv2.warpPolar` samples its source, in OpenCV's own arithmetic."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import cv2
import numpy as np

from devicecore.cv.native import original

if TYPE_CHECKING:
    from numpy.typing import NDArray

# How many rows of the other end are put before the first angle.
ANGLE_BORDER = 1


def to_polar(
    size: tuple[int, int], centre: tuple[float, float], radius: float, *, is_log: bool
) -> NDArray[np.float32]:
    """Return the columns and the rows for angles below each other and radii beside each other.

    Args:
        size: Width and height of the result.
        centre: Column and row of the pole.
        radius: The largest one.
        is_log: Whether radii are logarithms.
    """
    width, height = size
    if is_log:
        share = math.log(radius) / width
        radii = np.array([math.exp(place * share) - 1.0 for place in range(width)], np.float32)
    else:
        radii = (np.arange(width) * (radius / width)).astype(np.float32)
    angles = [2 * math.pi / height * place for place in range(height)]
    sides = np.array([list(map(turn, angles)) for turn in (math.cos, math.sin)])
    offset = np.array(centre, np.float32).astype(np.float64)[:, None, None]
    result: NDArray[np.float64] = radii.astype(np.float64) * sides[..., None] + offset
    return result.astype(np.float32)


def from_polar(
    size: tuple[int, int],
    polar: tuple[int, int],
    centre: tuple[float, float],
    radius: float,
    *,
    is_log: bool,
) -> NDArray[np.float32]:
    """Return the columns and the rows in an image of radii and angles, which has a border.

    Args:
        size: Width and height of the result.
        polar: Of the image, without its border.
        centre: Column and row of the pole.
        radius: The largest one.
        is_log: Whether radii are logarithms.
    """
    width, height = size
    x, y = np.array(centre, np.float32)
    across = (np.arange(width, dtype=np.float32) - x)[None]
    result = np.empty((2, height, width), np.float32)
    step = (math.log(radius) if is_log else radius) / polar[0]
    turn = 2 * math.pi / polar[1]
    for row, down in enumerate(np.arange(height, dtype=np.float32) - y):
        radii, angles = cv2.cartToPolar(across, np.full_like(across, down))
        if is_log:
            radii = original("log")(radii + np.float32(1))
        result[0, row] = radii[0].astype(np.float64) / step
        result[1, row] = (angles[0].astype(np.float64) / turn).astype(np.float32) + ANGLE_BORDER
    return result
