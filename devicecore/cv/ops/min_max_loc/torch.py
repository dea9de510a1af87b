"""`cv2.minMaxLoc` on torch tensors."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from devicecore.cv.operation import operation
from devicecore.cv.plan import Plan
from devicecore.cv.result_rules import number
from devicecore.cv.torch_support.masks import is_mask
from devicecore.cv.torch_support.operands import SMALL_INTEGERS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from devicecore.cv.image import Image
    from devicecore.cv.result_rules import ArrayInfo
    from devicecore.kernels import Exactness

    Tensor = torch.Tensor

# The promise for each type. Where there are values that are not numbers, OpenCV's answer depends
# on their places and on the processor; of others it is the same one.
PROMISES: Mapping[str, Exactness] = {
    **dict.fromkeys((*SMALL_INTEGERS, "int32"), "exact"),
    "float32": "close",
    "float64": "close",
}


def examples() -> Iterator[tuple[tuple[Any, ...], dict[str, Any]]]:
    """Yield small calls of every kind."""
    chance = np.random.default_rng(17)
    for dtype in sorted(PROMISES):
        for spread in (3, 120):
            plane = chance.integers(0, spread, (13, 19)).astype(dtype)
            yield (plane,), {}
            yield (plane, (plane > 1).astype(np.uint8)), {}
            yield (plane, np.zeros((13, 19), np.uint8)), {}


def _values_and_places(given: Mapping[str, Any]) -> tuple[ArrayInfo, ...]:
    src: Image = given["src"]
    is_float = src.has_float64 or src.dtype.startswith("float")
    value = number(src, "float64" if is_float else "int32")
    place = (2,), np.dtype(np.int64)
    return value, value, place, place


@operation("src", "mask", examples=examples, result=_values_and_places)
def minMaxLoc(src: Image, mask: Any = None) -> Plan | None:
    """Plan one call of ``cv2.minMaxLoc``."""
    promise = PROMISES.get(src.dtype)
    if promise is None or not is_mask(mask, src, "int8") or src.channels != 1:
        return None

    def run(images: Tensor, wanted: Tensor | None = None) -> tuple[Tensor, ...]:
        plain = images.to(torch.int32) if images.dtype is torch.uint16 else images
        flat = plain.reshape(len(images), src.pixels)
        kept = None
        if wanted is not None:
            kept = (wanted != 0).reshape(len(wanted), src.pixels).expand(flat.shape)
        found = [
            _extreme(flat, kept, src.width, is_least=each, has_float64=src.has_float64)
            for each in (True, False)
        ]
        (least, first), (most, last) = found
        return least, most, first, last

    return Plan(run, promise, _finished)


def _extreme(
    flat: Tensor, kept: Tensor | None, width: int, *, is_least: bool, has_float64: bool
) -> tuple[Tensor, Tensor]:
    """Return the extreme of the kept pixels of each image, and the first one's column and row.

    Where no pixel is kept, this is a 0 at the place -1, -1.
    """
    if kept is None:
        value = (flat.amin if is_least else flat.amax)(1, keepdim=True)
        return _number(value, has_float64=has_float64), _first_place(flat == value, width)
    if flat.is_floating_point():
        low, high = -math.inf, math.inf
    else:
        low, high = torch.iinfo(flat.dtype).min, torch.iinfo(flat.dtype).max
    shown = torch.where(kept, flat, high if is_least else low)
    value = (shown.amin if is_least else shown.amax)(1, keepdim=True)
    place = _first_place((flat == value) & kept, width)
    is_any = kept.any(1)
    return (
        torch.where(is_any, _number(value, has_float64=has_float64), 0),
        torch.where(is_any[:, None], place, -1),
    )


def _number(value: Tensor, *, has_float64: bool) -> Tensor:
    """Return values as OpenCV has them, in float64, or as numbers that a device has."""
    if has_float64:
        return value[:, 0].double()
    return value[:, 0].to(torch.float32 if value.is_floating_point() else torch.int32)


def _first_place(found: Tensor, width: int) -> Tensor:
    """Return the column and the row of the first of some pixels in each image."""
    count = found.shape[1]
    order = torch.arange(count, device=found.device)
    place = torch.where(found, order, count).amin(1)
    return torch.stack((place % width, place // width), 1)


def _finished(found: Any) -> Any:
    least, most, first, last = found
    return float(least), float(most), tuple(first.tolist()), tuple(last.tolist())
