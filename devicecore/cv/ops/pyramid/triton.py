"""`cv2.pyrDown` of uint8 by a Triton kernel."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import cv2
import numpy as np

from devicecore.cv.operation import Operation
from devicecore.cv.ops.pyramid import kernels
from devicecore.cv.ops.pyramid import torch as pyramid_torch
from devicecore.cv.triton_support.launch import Launch
from devicecore.cv.triton_support.launch_plan import plan_launch
from devicecore.cv.triton_support.strips import ALIGNMENT, fits, warps_of
from devicecore.cv.triton_support.weighted_sums import BORDERS

if TYPE_CHECKING:
    from collections.abc import Iterator

    import torch

    from devicecore.cv.image import Image
    from devicecore.cv.plan import Plan

# Groups of words that a program has, rows of a result in a strip, and those that are read ahead.
BLOCK, ROWS, AHEAD = 128, 12, 1
_REACH = 2
# Of more, a group of words has no whole pixels, or those beside it begin at no multiple of a group.
_MOST_CHANNELS = 4
_WORD = 4


def _examples() -> Iterator[tuple[tuple[Any, ...], dict[str, Any]]]:
    chance = np.random.default_rng(5)
    for shape in ((2 * ROWS, 64, 3), (8, 7, 1), (2 * ROWS, 32, 4)):
        yield (chance.integers(0, 256, shape, np.uint8),), {}


@functools.wraps(pyramid_torch.pyrDown.planner)
def _plan(
    src: Image,
    dst: Any = None,
    dstsize: Any = None,
    borderType: int = cv2.BORDER_DEFAULT,
) -> Plan | None:
    plan = pyramid_torch.pyrDown.planner(src, dst, dstsize, borderType)
    if plan is None or not fits(src) or borderType not in BORDERS:
        return None
    if min(src.size) <= _REACH or src.channels > _MOST_CHANNELS:
        return None
    high, wide = (src.height + 1) // 2, (src.width + 1) // 2
    length, short = src.width * src.channels, wide * src.channels
    # Whole pixels of the image, and of the result.
    group = 6 if src.channels == 3 else 4
    before = -(-_REACH * src.channels // _WORD)
    count = length // (_WORD * group)
    is_whole = length % (_WORD * group) == 0 and count > _REACH and high >= ROWS
    groups = count - 2 if is_whole else 0
    ends = 2 * _WORD * group // 2 if is_whole else short
    strips = -(-high // ROWS)
    others = -(-ends * strips // BLOCK)
    programs = others + -(-groups * strips // BLOCK)

    def launch(images: int, _device: torch.device) -> Launch:
        constants = {"BORDER": borderType, "CHANNELS": src.channels, "BEFORE": before}
        constants |= {"GROUP": group, "ROWS": ROWS, "AHEAD": AHEAD, "BLOCK": BLOCK}
        rest = (src.height, src.width, high, wide, groups, ends, others)
        return Launch(kernels.halve, (programs, images, 1), rest, constants, warps_of(BLOCK))

    shape = (high, wide, src.channels)
    return plan_launch(src, shape, launch, alignment=ALIGNMENT, in_groups=False)


pyrDown: Operation = Operation("pyrDown", "triton", _plan, pyramid_torch.pyrDown.images, _examples)
