"""`cv2.medianBlur` of uint8 by a Triton kernel, for windows of 3 and 5."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import numpy as np

from devicecore.cv.operation import Operation
from devicecore.cv.ops.median import kernels
from devicecore.cv.ops.median import torch as median_torch
from devicecore.cv.triton_support.strips import example, fits, strips

if TYPE_CHECKING:
    from collections.abc import Iterator

    from devicecore.cv.image import Image
    from devicecore.cv.plan import Plan

# By the size: rows of a strip, at least, and registers that may keep what is known of rows.
HIGH = {3: 16, 5: 32}
_KEPT = {3: 48, 5: 40}
_AHEAD = 1  # more rows take registers that the networks need


def _examples() -> Iterator[tuple[tuple[Any, ...], dict[str, Any]]]:
    for channels in (1, 3, 4):
        yield (example(channels), 3), {}
    narrow = example(3)[:, :16]
    yield (np.tile(narrow, (-(-HIGH[5] // len(narrow)), 1, 1)), 5), {}  # as high as a strip
    yield (example(1)[:3, :23].copy(), 3), {}


@functools.wraps(median_torch.medianBlur.planner)
def _plan(src: Image, ksize: int, dst: Any = None) -> Plan | None:
    plan = median_torch.medianBlur.planner(src, ksize, dst)
    if plan is None or ksize not in HIGH or not fits(src):
        return None
    side = ksize // 2 * src.channels
    return strips(
        kernels.median,
        src,
        (side, side),
        ksize,
        {"SETTINGS": (ksize,), "TOP": ksize // 2},
        values=2 * ksize,
        kept=_KEPT[ksize],
        high=HIGH[ksize],
        ahead=_AHEAD,
    )


medianBlur: Operation = Operation(
    "medianBlur", "triton", _plan, median_torch.medianBlur.images, _examples
)
