"""`cv2.medianBlur` by a kernel of Triton: squares of 3 on bytes."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from devicecore.cv.operation import Operation
from devicecore.cv.ops import smoothing
from devicecore.cv.triton.kernels import ranking as kernels
from devicecore.cv.triton.strips import example, fits, strips

if TYPE_CHECKING:
    from collections.abc import Iterator

    from devicecore.cv.image import Image
    from devicecore.cv.plan import Plan

_SIZE = 3


def _examples() -> Iterator[tuple[tuple[Any, ...], dict[str, Any]]]:
    for channels in (1, 3, 4):
        yield (example(channels), _SIZE), {}
    yield (example(1)[:3, :23].copy(), _SIZE), {}


@functools.wraps(smoothing.medianBlur.planner)
def _plan(src: Image, ksize: int, dst: Any = None) -> Plan | None:
    plan = smoothing.medianBlur.planner(src, ksize, dst)
    if plan is None or ksize != _SIZE or not fits(src):
        return None
    sides = src.channels, src.channels
    constants = {"SETTINGS": (), "TOP": _SIZE // 2}
    return strips(kernels.median, src, sides, _SIZE, constants, values=6, kept=48, high=16)


medianBlur: Operation = Operation(
    "medianBlur", "triton", _plan, smoothing.medianBlur.images, _examples
)
