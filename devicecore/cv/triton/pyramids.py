"""`cv2.pyrDown` by a kernel of Triton: bytes."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import cv2
import numpy as np
import torch

from devicecore.cv.operation import Operation
from devicecore.cv.ops import pyramids
from devicecore.cv.plan import Plan
from devicecore.cv.triton.correlating import BORDERS
from devicecore.cv.triton.kernels import pyramids as kernels
from devicecore.cv.triton.launching import Launch, current
from devicecore.cv.triton.strips import fits

if TYPE_CHECKING:
    from collections.abc import Iterator

    from devicecore.cv.image import Image

_BLOCK, _ROWS, _WARPS = 256, 8, 4
_REACH = 2


def _examples() -> Iterator[tuple[tuple[Any, ...], dict[str, Any]]]:
    chance = np.random.default_rng(5)
    for shape in ((13, 361, 3), (8, 7, 1), (5, 300, 4)):
        yield (chance.integers(0, 256, shape, np.uint8),), {}


@functools.wraps(pyramids.pyrDown.planner)
def _plan(
    src: Image,
    dst: Any = None,
    dstsize: Any = None,
    borderType: int = cv2.BORDER_DEFAULT,
) -> Plan | None:
    plan = pyramids.pyrDown.planner(src, dst, dstsize, borderType)
    if plan is None or not fits(src) or borderType not in BORDERS:
        return None
    if min(src.size) <= _REACH:
        return None
    high, wide = (src.height + 1) // 2, (src.width + 1) // 2

    @functools.lru_cache(maxsize=16)
    def launch(count: int) -> Launch:
        constants = {"BORDER": borderType, "CHANNELS": src.channels}
        constants |= {"ROWS": _ROWS, "BLOCK": _BLOCK}
        grid = (-(-wide * src.channels // _BLOCK), -(-high // _ROWS), count)
        rest = (src.height, src.width, high, wide)
        return Launch(kernels.halve, grid, rest, constants, _WARPS)

    def run(images: torch.Tensor) -> torch.Tensor:
        images = images.contiguous()
        shape = (images.shape[0], high, wide, src.channels)
        found = torch.empty(shape, dtype=torch.uint8, device=images.device)
        with current(images.device):
            launch(images.shape[0])(images, found)
        return found

    return Plan(run)


pyrDown: Operation = Operation("pyrDown", "triton", _plan, pyramids.pyrDown.images, _examples)
