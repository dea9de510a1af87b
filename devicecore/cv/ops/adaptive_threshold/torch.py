"""`cv2.adaptiveThreshold` on torch tensors."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import cv2
import numpy as np
import torch

from devicecore.cv.environment import environment
from devicecore.cv.operation import operation
from devicecore.cv.ops.box_filter.box_sums import box_plan
from devicecore.cv.ops.gaussian_blur.float_blur import float_weights, gaussian_blur
from devicecore.cv.plan import Plan
from devicecore.cv.torch_support.fma import multiply_add
from devicecore.cv.torch_support.operands import round_to_integers
from devicecore.cv.torch_support.windows import window

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from devicecore.cv.image import Image

    Tensor = torch.Tensor

_KINDS = frozenset({cv2.THRESH_BINARY, cv2.THRESH_BINARY_INV})
# Beyond this, OpenCV's own conversions of numbers may overflow.
_LARGEST = 1 << 20


def examples() -> Iterator[tuple[tuple[Any, ...], dict[str, Any]]]:
    """Yield small calls of every kind."""
    plane = np.random.default_rng(22).integers(100, 130, (17, 23), np.uint8)
    for method in (cv2.ADAPTIVE_THRESH_MEAN_C, cv2.ADAPTIVE_THRESH_GAUSSIAN_C):
        for kind in sorted(_KINDS):
            for size, less in ((3, 2), (11, -1.5), (23, 0)):
                yield (plane, 200, method, kind, size, less), {}


@operation("src", examples=examples)
def adaptiveThreshold(
    src: Image,
    maxValue: float,
    adaptiveMethod: int,
    thresholdType: int,
    blockSize: int,
    C: float,
    dst: Any = None,  # noqa: ARG001 - whoever calls kernels fills it
) -> Plan | None:
    """Plan one call of ``cv2.adaptiveThreshold``."""
    if src.dtype != "uint8" or src.channels != 1 or thresholdType not in _KINDS:
        return None
    if type(blockSize) is not int or blockSize < 3 or blockSize % 2 == 0:
        return None
    if not (0 <= maxValue < _LARGEST and abs(C) < _LARGEST):
        return None
    means = _means(src, adaptiveMethod, blockSize)
    if means is None:
        return None
    is_inverse = thresholdType == cv2.THRESH_BINARY_INV
    less = -(math.floor(C) if is_inverse else math.ceil(C))
    most = min(round(maxValue), 255)

    def run(images: Tensor) -> Tensor:
        is_more = images.to(torch.int32) - means(images).to(torch.int32) > less
        return (~is_more if is_inverse else is_more).to(torch.uint8) * most

    return Plan(run)


def _means(src: Image, method: int, size: int) -> Callable[[Tensor], Tensor] | None:
    """Return what finds the mean around each pixel, or None where OpenCV has to judge."""
    if method == cv2.ADAPTIVE_THRESH_MEAN_C:
        plan = box_plan(src, -1, window((size, size)), cv2.BORDER_REPLICATE, normalize=True)
        return None if plan is None else plan.run
    here = environment()
    if method != cv2.ADAPTIVE_THRESH_GAUSSIAN_C or here.version != (5, 0) or not here.is_x86:
        return None
    sizes = [1 if length == 1 else size for length in src.size]
    across, down = float_weights((sizes[0], sizes[1]), (0, 0))
    add = multiply_add(src, is_fused=here.has_fma)
    blurred = gaussian_blur(across, down, cv2.BORDER_REPLICATE, add)
    return lambda images: round_to_integers(blurred(images.float()), torch.uint8)
