"""`cv2.GaussianBlur` by kernels of Triton: small kernels on bytes."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import cv2
import numpy as np
import torch

from devicecore.cv.operation import Operation
from devicecore.cv.ops import smoothing
from devicecore.cv.plan import Plan
from devicecore.cv.triton import preprocessing
from devicecore.cv.triton.kernels import preprocessing as kernels
from devicecore.cv.triton.launching import Launch, current

if TYPE_CHECKING:
    from collections.abc import Iterator

    from devicecore.cv.image import Image


def _examples() -> Iterator[tuple[tuple[Any, ...], dict[str, Any]]]:
    for channels in (1, 3, 4):
        image = np.random.default_rng(3).integers(0, 256, (17, 22, channels), np.uint8)
        for size, sigma in (((3, 3), 0), ((5, 5), 0), ((7, 3), 1.3), ((0, 0), 0.9)):
            yield (image, size, sigma), {}


@functools.wraps(smoothing.GaussianBlur.planner)
def _plan(
    src: Image,
    ksize: Any,
    sigmaX: float,
    dst: Any = None,
    sigmaY: float = 0,
    borderType: int = cv2.BORDER_DEFAULT,
    hint: int = 0,
) -> Plan | None:
    known = smoothing.GaussianBlur.planner(src, ksize, sigmaX, dst, sigmaY, borderType, hint)
    if known is None or src.dtype != "uint8" or borderType != cv2.BORDER_REFLECT_101:
        return None
    found = smoothing.gaussian_weights(src, ksize, (sigmaX, sigmaY), borderType)
    if found is None or max(map(len, found)) > preprocessing.WIDEST_BLUR:
        return None
    weights, reach = preprocessing.filled_weights(*found)
    if not 1 <= reach < min(src.size):
        return None

    @functools.lru_cache(maxsize=16)
    def launch(count: int, device: torch.device) -> Launch:
        height, length = src.height, src.width * src.channels
        on_card = torch.from_numpy(weights).to(device)
        # No table is read, but the kernel has a place for one.
        rest = (on_card, on_card, height, src.width, height * length, length, 1, 0)
        rows, block = preprocessing.BLURRED_ROWS, preprocessing.BLOCK
        constants = {
            "REACH": reach,
            "CHANNELS": 1,
            "STEP": src.channels,
            "LOOKED_UP": False,
            "ROWS": rows,
            "BLOCK": block,
        }
        grid = (-(-length // block), -(-height // rows), count)
        return Launch(kernels.blur, grid, rest, constants, preprocessing.BLURRING_WARPS)

    def run(images: torch.Tensor) -> torch.Tensor:
        images = images.contiguous()
        found = torch.empty(images.shape, dtype=torch.uint8, device=images.device)
        with current(images.device):
            launch(images.shape[0], images.device)(images, found)
        return found

    return Plan(run)


GaussianBlur: Operation = Operation("GaussianBlur", "triton", _plan, ("src",), _examples)
