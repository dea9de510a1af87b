"""`cv2.copyMakeBorder` of uint8 by a Triton kernel."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import cv2
import numpy as np

from devicecore.cv import border_index
from devicecore.cv.arguments import constant
from devicecore.cv.operation import Operation
from devicecore.cv.ops.copy_make_border import torch as copy_make_border_torch
from devicecore.cv.triton_support.gather import plan_gather

if TYPE_CHECKING:
    from collections.abc import Iterator

    from devicecore.cv.image import Image
    from devicecore.cv.plan import Plan


def _examples() -> Iterator[tuple[tuple[Any, ...], dict[str, Any]]]:
    chance = np.random.default_rng(4)
    for channels in (1, 3, 4):
        image = chance.integers(0, 256, (4, 21, channels), np.uint8)
        for border in sorted(border_index.BORDERS if channels == 3 else {cv2.BORDER_CONSTANT}):
            for margins in ((1, 2, 3, 0), (1, 0, 0, 4)):
                yield (image, *margins, border), {"value": (1.5, 300, 7, 9)}


@functools.wraps(copy_make_border_torch.copyMakeBorder.planner)
def _plan(
    src: Image,
    top: int,
    bottom: int,
    left: int,
    right: int,
    borderType: int,
    dst: Any = None,
    value: Any = None,
) -> Plan | None:
    known = copy_make_border_torch.copyMakeBorder.planner
    if known(src, top, bottom, left, right, borderType, dst, value) is None:
        return None
    border = borderType & ~cv2.BORDER_ISOLATED
    columns = border_index.border_index(src.width, left, right, border)
    rows = border_index.border_index(src.height, top, bottom, border)
    is_constant = border == cv2.BORDER_CONSTANT and src.channels <= 4
    values = constant(value, src.channels, src.dtype) if is_constant else ()
    return plan_gather(src, columns, rows, values)


copyMakeBorder: Operation = Operation("copyMakeBorder", "triton", _plan, ("src",), _examples)
