"""Sums and means of rectangles, with the roundings of `cv2.blur` and `cv2.boxFilter`."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from devicecore.cv.ops.numbers import saturated
from devicecore.cv.ops.windows import FILTER_BORDERS, vector_tail
from devicecore.cv.plan import Plan
from devicecore.cv.table import Table

if TYPE_CHECKING:
    from collections.abc import Callable

    from devicecore.cv.image import Image
    from devicecore.cv.ops.windows import Window

    Tensor = torch.Tensor

# By the type of the image: OpenCV's numbers of the types that a result may have.
_TARGETS = {
    "uint8": {-1: torch.uint8, 0: torch.uint8, 5: torch.float32},
    "uint16": {-1: torch.uint16, 2: torch.uint16, 5: torch.float32},
    "int16": {-1: torch.int16, 3: torch.int16, 5: torch.float32},
    "float32": {-1: torch.float32, 5: torch.float32},
}
# Beyond these, sums of integers are float64 sums.
_LARGEST_AREA = {"uint8": 1 << 23, "uint16": 1 << 15, "int16": 1 << 16}
_BYTES_BY_DIVISION = 256
_DIVISION_BITS = 23


def box_plan(
    src: Image, depth: int, area: Window, border_type: int, *, normalize: bool
) -> Plan | None:
    """Plan sums, or means, of the pixels in a window.

    Args:
        src: The images.
        depth: OpenCV's number of the type of the result.
        area: The window.
        border_type: What stands outside of an image.
        normalize: Whether these are means.
    """
    target = _TARGETS.get(src.dtype, {}).get(depth)
    count = area.width * area.height
    if target is None or src.pixels == 0 or border_type not in FILTER_BORDERS:
        return None
    if src.dtype == "float32":
        return _of_floats(area, border_type, 1.0 / count if normalize else 1.0)
    if count > _LARGEST_AREA[src.dtype]:
        return None
    # Of two bytes of 255, OpenCV makes 255 in most columns, and 0 in the last ones.
    if count == 2 and normalize and target is torch.uint8:
        return None
    if count == 1 or not normalize:
        finish: Callable[[Tensor], Tensor] = lambda sums: saturated(sums, target)  # noqa: E731
    elif target is torch.uint8 and count <= _BYTES_BY_DIVISION:
        finish = _divided(count)
    else:
        finish = _scaled(src, target, count)

    def run(images: Tensor) -> Tensor:
        x = area.around(images, border_type).to(torch.int32)
        return finish(_summed(_summed(x, 2, area.width), 1, area.height))

    return Plan(run)


def _of_floats(area: Window, border_type: int, share: float) -> Plan:
    """Plan sums in float64, such as OpenCV's, whose order may show in the last bit of a result."""

    def run(images: Tensor) -> Tensor:
        x = area.around(images, border_type).double()
        return _summed(_summed(x, 2, area.width), 1, area.height).mul_(share).float()

    return Plan(run, "tolerance")


def _summed(x: Tensor, axis: int, size: int) -> Tensor:
    """Return sums of *size* neighbours along an axis, doubling what is known of them."""
    length = x.shape[axis] - size + 1
    total, start, covered = None, 0, 1
    while True:
        if size & covered:
            part = x.narrow(axis, start, length)
            total = part.clone() if total is None else total.add_(part)
            start += covered
        if 2 * covered > size:
            assert total is not None  # a size has bits
            return total
        x = x.narrow(axis, 0, x.shape[axis] - covered) + x.narrow(
            axis, covered, x.shape[axis] - covered
        )
        covered *= 2


def inverse(count: int) -> tuple[int, int]:
    """Return what divides a sum of bytes: a rounded inverse, and what is added before.

    The product has 23 bits after the point.
    """
    exact = (1 << _DIVISION_BITS) / count
    factor, added = math.floor(exact), count // 2
    return (factor, added + 1) if exact - factor < 0.5 else (factor + 1, added)


def _divided(count: int) -> Callable[[Tensor], Tensor]:
    """Return a division of sums of bytes by multiplication with a rounded inverse."""
    factor, added = inverse(count)

    def finish(sums: Tensor) -> Tensor:
        return ((sums + added).to(torch.int64) * factor >> _DIVISION_BITS).to(torch.uint8)

    return finish


def _scaled(src: Image, target: torch.dtype, count: int) -> Callable[[Tensor], Tensor]:
    """Return a product with the inverse: of float32 in vectors, of float64 in what they leave."""
    share = 1.0 / count
    single = float(np.float32(share))
    left_over = vector_tail(src.width, src.channels, 4 if target is torch.float32 else 8)
    tail: Any = None if left_over is None else Table(left_over)

    def finish(sums: Tensor) -> Tensor:
        found = sums.to(torch.float32) * single
        if tail is not None:
            found = torch.where(tail.on(sums), sums.to(torch.float64) * share, found.double())
        return saturated(found, target)

    return finish
