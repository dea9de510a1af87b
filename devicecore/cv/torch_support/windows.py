"""Windows around pixels: borders, anchors, and weighted sums."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import cv2
import numpy as np
import torch
from attrs import frozen

from devicecore.cv.arguments import whole
from devicecore.cv.torch_support.padding import pad_images

if TYPE_CHECKING:
    from collections.abc import Sequence

    Tensor = torch.Tensor

# The borders that OpenCV's filters take.
FILTER_BORDERS = frozenset(
    {cv2.BORDER_CONSTANT, cv2.BORDER_REPLICATE, cv2.BORDER_REFLECT, cv2.BORDER_REFLECT_101}
)


@frozen
class Window:
    """A window and its place.

    Attributes:
        width: Pixels beside each other.
        height: Pixels below each other.
        left: How many of them lie left of the pixel that it is for.
        top: How many lie above.
    """

    width: int
    height: int
    left: int
    top: int

    def around(
        self, images: Tensor, border_type: int, value: float | Sequence[float] = 0
    ) -> Tensor:
        """Return *images* with the borders that windows of all their pixels reach into."""
        bottom, right = self.height - 1 - self.top, self.width - 1 - self.left
        return pad_images(images, self.top, bottom, self.left, right, border_type, value)


def window(size: Any, anchor: Any = (-1, -1)) -> Window:
    """Return a window as OpenCV's functions describe it.

    Args:
        size: Width and height.
        anchor: The place of its pixel, from the left and from the top; -1 for the middle.

    Raises:
        ValueError: There is no such window.
        TypeError: These are no integers.
    """
    width, height = two_integers(size)
    x, y = two_integers(anchor)
    left, top = (width // 2 if x == -1 else x), (height // 2 if y == -1 else y)
    if not (0 <= left < width and 0 <= top < height):
        msg = f"a window of {width} x {height} has no pixel at {x}, {y}"
        raise ValueError(msg)
    return Window(width, height, left, top)


def two_integers(value: Any) -> tuple[int, int]:
    """Return two integers.

    Raises:
        TypeError: They are something else.
    """
    first, second = map(whole, value)
    return first, second


def weighted_sum(x: Tensor, axis: int, weights: Sequence[int]) -> Tensor:
    """Return sums of neighbours along an axis by whole weights; it gets shorter by the taps."""
    length = x.shape[axis] - len(weights) + 1
    total: Tensor | None = None
    for place, weight in enumerate(weights):
        if weight == 0:
            continue
        part = x.narrow(axis, place, length)
        if total is None:
            total = part * weight
        else:
            total.add_(part, alpha=weight)
    return torch.zeros_like(x.narrow(axis, 0, length)) if total is None else total


def vector_tail(width: int, channels: int, lanes: int) -> np.ndarray[Any, Any] | None:
    """Return which values of a row are left over by vectors, or None if none are.

    Args:
        width: Pixels of the row.
        channels: Values of a pixel.
        lanes: Values of a vector.

    Returns:
        Booleans of shape (width, channels).
    """
    count = width * channels
    whole = count - count % lanes
    if whole == count:
        return None
    return (np.arange(count) >= whole).reshape(width, channels)
