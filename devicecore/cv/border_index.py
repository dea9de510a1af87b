"""Border index: which pixel OpenCV reads outside of an image, for each border type."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import cv2
import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

# Borders whose values are pixels of the image.
REPEATING = frozenset(
    {cv2.BORDER_REPLICATE, cv2.BORDER_REFLECT, cv2.BORDER_REFLECT_101, cv2.BORDER_WRAP}
)
BORDERS = REPEATING | {cv2.BORDER_CONSTANT}


def border_pixels(places: Any, length: int, border_type: int) -> Any:
    """Return the pixels of an axis that stand at *places*, which may be outside of it.

    Args:
        places: Integers, an array of numpy or a tensor of torch; 0 is the first pixel.
        length: How many pixels the axis has.
        border_type: One of `REPEATING`.

    Raises:
        ValueError: The border is of another type.
    """
    if border_type == cv2.BORDER_REPLICATE or (length == 1 and border_type in REPEATING):
        return places.clip(0, length - 1)
    if border_type == cv2.BORDER_WRAP:
        return places % length
    if border_type == cv2.BORDER_REFLECT:
        turn = 2 * length - 1  # twice the place between the last pixel and its reflection
        return (turn - abs(places % (2 * length) * 2 - turn)) // 2
    if border_type == cv2.BORDER_REFLECT_101:
        last = length - 1
        return last - abs(places % (2 * last) - last)
    msg = f"border type {border_type} repeats no pixels"
    raise ValueError(msg)


def border_index(length: int, before: int, after: int, border_type: int) -> NDArray[np.int64]:
    """Return the pixel at each place of an axis that was made longer; -1 is the constant value.

    Args:
        length: How many pixels the axis has.
        before: How many are put before them.
        after: How many are put after them.
        border_type: One of `BORDERS`.

    Raises:
        ValueError: The border is of another type.
    """
    places = np.arange(-before, length + after)
    if border_type == cv2.BORDER_CONSTANT:
        return np.where((places >= 0) & (places < length), places, -1)
    index: NDArray[np.int64] = border_pixels(places, length, border_type)
    return index
