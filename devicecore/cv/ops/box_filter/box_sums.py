"""Box sums and means, rounded as `cv2.blur` and `cv2.boxFilter` do."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from devicecore.cv.plan import Plan
from devicecore.cv.table import Table
from devicecore.cv.torch_support.dtypes import saturate, unsigned_as_signed
from devicecore.cv.torch_support.float_pairs import as_pair, constant, of_integers
from devicecore.cv.torch_support.integer_means import integer_means
from devicecore.cv.torch_support.windows import FILTER_BORDERS, vector_tail

if TYPE_CHECKING:
    from collections.abc import Callable

    from devicecore.cv.image import Image
    from devicecore.cv.torch_support.windows import Window
    from devicecore.kernels import Exactness

    Tensor = torch.Tensor
    Finishing = tuple[Callable[[Tensor], Tensor], Exactness]

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
# Integers below this one are float32 numbers.
_EXACT = 1 << 24


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
    if target is None or src.lacks(target) or src.pixels == 0 or border_type not in FILTER_BORDERS:
        return None
    if src.dtype == "float32":
        return _of_floats(src, area, border_type, 1.0 / count if normalize else 1.0)
    if count > _LARGEST_AREA[src.dtype]:
        return None
    # Of two bytes of 255, OpenCV makes 255 in most columns, and 0 in the last ones.
    if count == 2 and normalize and target is torch.uint8:
        return None
    finishing = _finishing(src, target, count if normalize else 1)
    if finishing is None:
        return None
    finish, promise = finishing

    def run(images: Tensor) -> Tensor:
        x = area.around(images, border_type).to(torch.int32)
        sums: Tensor = sliding_sum(sliding_sum(x, 2, area.width), 1, area.height)
        return finish(sums)

    return Plan(run, promise)


def _finishing(src: Image, target: torch.dtype, count: int) -> Finishing | None:
    """Return what makes means of sums of so many pixels, and how near these come to OpenCV's."""
    if count == 1:
        return lambda sums: saturate(sums, target), "exact"
    if target is torch.uint8 and count <= _BYTES_BY_DIVISION:
        return _divided(count), "exact"
    return _scaled(src, target, count)


def _of_floats(src: Image, area: Window, border_type: int, share: float) -> Plan:
    """Plan sums in float64, such as OpenCV's, whose order may show in the last bit of a result."""

    def run(images: Tensor) -> Tensor:
        x = area.around(images, border_type)
        wide: Any = x.double() if src.has_float64 else as_pair(x)
        found = sliding_sum(sliding_sum(wide, 2, area.width), 1, area.height)
        mean: Tensor = (found * (share if src.has_float64 else constant(share, x))).float()
        return mean

    return Plan(run, "tolerance")


def sliding_sum(x: Any, axis: int, size: int) -> Any:
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
        return (
            ((sums + added).to(torch.int64) * factor)
            .bitwise_right_shift(_DIVISION_BITS)
            .to(torch.uint8)
        )

    return finish


def _scaled(src: Image, target: torch.dtype, count: int) -> Finishing | None:
    """Return a product with the inverse: of float32 in vectors, of float64 in what they leave."""
    share = 1.0 / count
    inverted = float(np.float32(share))
    left_over = vector_tail(src.width, src.channels, 4 if target is torch.float32 else 8)
    tail: Any = None if left_over is None else Table(left_over)
    if tail is not None and not src.has_float64:
        return _scaled_without_float64(src, target, count, tail)

    def finish(sums: Tensor) -> Tensor:
        result = sums.to(torch.float32) * inverted
        if tail is not None:
            result = torch.where(tail.on(sums), sums.to(torch.float64) * share, result.double())
        return saturate(result, target)

    return finish, "exact"


def _scaled_without_float64(
    src: Image, target: torch.dtype, count: int, tail: Table
) -> Finishing | None:
    limits, inverted = np.iinfo(src.dtype), float(np.float32(1.0 / count))
    means = integer_means(count, int(limits.min), int(limits.max))
    if means is None:
        return None

    def finish(sums: Tensor) -> Tensor:
        result = saturate(sums.to(torch.float32) * inverted, target)
        if target.is_floating_point:
            rest = (of_integers(sums) * constant(1.0 / count, result)).float()
        else:
            rest = saturate(means(sums), target)
        return torch.where(
            tail.on(sums), unsigned_as_signed(rest), unsigned_as_signed(result)
        ).view(target)

    # Sums of more bits may be float64 numbers in the middle of two float32.
    is_short = int(max(-limits.min, limits.max)) * count < _EXACT
    return finish, "exact" if is_short or not target.is_floating_point else "tolerance"
