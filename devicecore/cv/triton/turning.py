"""`cv2.flip` and `cv2.rotate` of bytes by kernels of Triton."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import cv2
import numpy as np

from devicecore.cv.operation import Operation
from devicecore.cv.ops import turning
from devicecore.cv.plan import Plan
from devicecore.cv.triton.picking import picked

if TYPE_CHECKING:
    from collections.abc import Iterator

    from devicecore.cv.image import Image


def _examples(codes: tuple[int, ...]) -> Iterator[tuple[tuple[Any, ...], dict[str, Any]]]:
    chance = np.random.default_rng(4)
    for channels in (1, 3, 4):
        for width in (7, 24):
            image = chance.integers(0, 256, (3, width, channels), np.uint8)
            for code in codes:
                yield (image, code), {}


@functools.wraps(turning.flip.planner)
def _flip(src: Image, flipCode: int, dst: Any = None) -> Plan | None:
    if turning.flip.planner(src, flipCode, dst) is None:
        return None
    columns, rows = np.arange(src.width), np.arange(src.height)
    if flipCode != 0:
        columns = columns[::-1]
    run = picked(src, columns, rows[::-1] if flipCode <= 0 else rows)
    return None if run is None else Plan(run)


@functools.wraps(turning.rotate.planner)
def _rotate(src: Image, rotateCode: int, dst: Any = None) -> Plan | None:
    return _flip(src, -1, dst) if rotateCode == cv2.ROTATE_180 else None


flip: Operation = Operation(
    "flip", "triton", _flip, turning.flip.images, functools.partial(_examples, (0, 1, -1))
)
rotate: Operation = Operation(
    "rotate", "triton", _rotate, turning.rotate.images, functools.partial(_examples, (0, 1, 2))
)
