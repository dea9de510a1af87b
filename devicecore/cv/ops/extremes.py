"""`cv2.minMaxLoc` on tensors of torch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from devicecore.cv.operation import operation
from devicecore.cv.ops.operands import SMALL_INTEGERS
from devicecore.cv.plan import Plan

if TYPE_CHECKING:
    from collections.abc import Iterator

    from devicecore.cv.image import Image

    Tensor = torch.Tensor

_INTEGERS = SMALL_INTEGERS | {"int32"}


def examples() -> Iterator[tuple[tuple[Any, ...], dict[str, Any]]]:
    """Yield small calls of every kind."""
    chance = np.random.default_rng(17)
    for dtype in sorted(_INTEGERS):
        limits = np.iinfo(dtype)
        yield (chance.integers(limits.min, limits.max, (13, 19), dtype, endpoint=True),), {}
        yield (chance.integers(3, 6, (13, 19), dtype),), {}


@operation("src", examples=examples)
def minMaxLoc(src: Image, mask: Any = None) -> Plan | None:
    """Plan one call of ``cv2.minMaxLoc`` of whole planes.

    Of floats, OpenCV's answer depends on where those lie that are not numbers.
    """
    if mask is not None or src.channels != 1 or src.dtype not in _INTEGERS:
        return None
    pixels, width = src.pixels, src.width

    def run(images: Tensor) -> tuple[Tensor, ...]:
        # One number tells a value and its place, so that the first place of a value wins.
        flat = images.reshape(len(images), pixels).to(torch.int64) * pixels
        order = torch.arange(pixels, device=images.device)
        least, most = (flat + order).amin(1), (flat - order).amax(1)
        return (
            least.div(pixels, rounding_mode="floor").to(torch.float64),
            (-most).div(pixels, rounding_mode="floor").neg().to(torch.float64),
            _place(least % pixels, width),
            _place(-most % pixels, width),
        )

    return Plan(run, finish=_finished)


def _place(found: Tensor, width: int) -> Tensor:
    return torch.stack((found % width, found // width), 1)


def _finished(found: Any) -> Any:
    least, most, first, last = found
    return float(least), float(most), tuple(first.tolist()), tuple(last.tolist())
