"""`cv2.flip`, `cv2.rotate` and `cv2.transpose` of uint8 by Triton kernels."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import cv2
import numpy as np

from devicecore.cv.operation import Operation
from devicecore.cv.ops.flip_rotate import torch as flip_rotate_torch
from devicecore.cv.ops.flip_rotate.kernels import turn, turn_groups
from devicecore.cv.triton_support.alignment import GROUP, is_native
from devicecore.cv.triton_support.gather import fits, plan_gather
from devicecore.cv.triton_support.launch import Launch
from devicecore.cv.triton_support.launch_plan import plan_launch

if TYPE_CHECKING:
    from collections.abc import Iterator

    import torch

    from devicecore.cv.image import Image
    from devicecore.cv.plan import Plan

_TILE, _WARPS = 32, 4
# Rows that are written are as long as the tiles are tall.
_TALL, _WIDE, _GROUPED_WARPS = 128, 32, 8


def _examples(*codes: tuple[int, ...]) -> Iterator[tuple[tuple[Any, ...], dict[str, Any]]]:
    chance = np.random.default_rng(4)
    for channels in (1, 3, 4):
        for height, width in ((3, 7), (3, 24), (4, 8)):
            image = chance.integers(0, 256, (height, width, channels), np.uint8)
            for code in codes:
                yield (image, *code), {}


@functools.wraps(flip_rotate_torch.flip.planner)
def _flip(src: Image, flipCode: int, dst: Any = None) -> Plan | None:
    if flip_rotate_torch.flip.planner(src, flipCode, dst) is None:
        return None
    columns, rows = np.arange(src.width), np.arange(src.height)
    if flipCode != 0:
        columns = columns[::-1]
    return plan_gather(src, columns, rows[::-1] if flipCode <= 0 else rows)


@functools.wraps(flip_rotate_torch.rotate.planner)
def _rotate(src: Image, rotateCode: int, dst: Any = None) -> Plan | None:
    if flip_rotate_torch.rotate.planner(src, rotateCode, dst) is None:
        return None
    if rotateCode == cv2.ROTATE_180:
        return _flip(src, -1, dst)
    is_clockwise = rotateCode == cv2.ROTATE_90_CLOCKWISE
    return _exchanged(src, from_right=not is_clockwise, from_below=is_clockwise)


@functools.wraps(flip_rotate_torch.transpose.planner)
def _transpose(src: Image, dst: Any = None) -> Plan | None:
    if flip_rotate_torch.transpose.planner(src, dst) is None:
        return None
    return _exchanged(src, from_right=False, from_below=False)


def _exchanged(src: Image, *, from_right: bool, from_below: bool) -> Plan | None:
    """Plan an exchange of rows and columns; see the kernel."""
    if not fits(src, src.width, src.height):
        return None
    height, width, channels = src.height, src.width, src.channels
    constants = {"FROM_RIGHT": from_right, "FROM_BELOW": from_below, "CHANNELS": channels}
    in_groups = height % GROUP == 0 and width % GROUP == 0
    tall, wide = (_TALL, _WIDE) if in_groups else (_TILE, _TILE)

    def launch(count: int, device: torch.device) -> Launch:
        grid = (-(-width // wide), -(-height // tall), count)
        if not in_groups:
            return Launch(turn, grid, (height, width), constants | {"TILE": _TILE}, _WARPS)
        own = {"NATIVE": is_native(device), "TALL": tall, "WIDE": wide}
        return Launch(turn_groups, grid, (height, width), constants | own, _GROUPED_WARPS)

    return plan_launch(src, (width, height, channels), launch)


flip: Operation = Operation(
    "flip", "triton", _flip, ("src",), functools.partial(_examples, (0,), (1,), (-1,))
)
rotate: Operation = Operation(
    "rotate", "triton", _rotate, ("src",), functools.partial(_examples, (0,), (1,), (2,))
)
transpose: Operation = Operation(
    "transpose", "triton", _transpose, ("src",), functools.partial(_examples, ())
)
