"""Gaussian blurs of planes of float32, with the roundings of `cv2.GaussianBlur`.

Which sums are fused was found by comparing; some of it is the compiler's choice.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import cv2
import torch

from devicecore.cv.ops.fusing import fused
from devicecore.cv.ops.windows import window

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from devicecore.cv.image import Image

    Tensor = torch.Tensor

# Values of a row that are computed together, along rows and along columns. What they leave over
# has other roundings, and there, taps in groups of so many are not fused.
_ACROSS, _DOWN, _TAPS = 4, 8, 4


def gaussian_plan(src: Image, size: int, *, is_fused: bool) -> Callable[[Tensor], Tensor]:
    """Return what blurs planes of float32, with the last pixels repeated around them.

    Args:
        src: The planes.
        size: Of the window, in both directions; odd. The sigma is the one that fits it.
        is_fused: Whether the processor's float arithmetic is fused.
    """
    kernels = [
        [1.0] if length == 1 else cv2.getGaussianKernel(size, 0, cv2.CV_32F).ravel().tolist()
        for length in src.size
    ]
    across, down = kernels
    area = window((len(across), len(down)))

    def run(planes: Tensor) -> Tensor:
        x = area.around(planes, cv2.BORDER_REPLICATE)
        rows = _along_rows(x, across, src.width, is_fused=is_fused)
        return _along_columns(rows, down, is_fused=is_fused)

    return run


def _along_rows(x: Tensor, weights: Sequence[float], width: int, *, is_fused: bool) -> Tensor:
    if not is_fused:
        return _row_sums(x, weights, 0, width, len(weights))
    whole = width - width % _ACROSS
    not_fused = (len(weights) - 1) // _TAPS * _TAPS
    together = _row_sums(x, weights, 0, whole, 0)
    rest = _row_sums(x, weights, whole, width - whole, not_fused)
    return torch.cat((together, rest), 2)


def _row_sums(
    x: Tensor, weights: Sequence[float], start: int, width: int, not_fused: int
) -> Tensor:
    """Return sums for some columns, whose taps are fused after the first ones."""
    total = x.narrow(2, start, width) * weights[0]
    for place, weight in enumerate(weights[1:], 1):
        part = x.narrow(2, start + place, width)
        total = _added(part, weight, total, is_fused=place > not_fused)
    return total


def _along_columns(x: Tensor, weights: Sequence[float], *, is_fused: bool) -> Tensor:
    width = x.shape[2]
    whole = width - width % _DOWN if is_fused else 0
    together = _column_sums(x.narrow(2, 0, whole), weights, is_fused=True)
    rest = _column_sums(x.narrow(2, whole, width - whole), weights, is_fused=False)
    return torch.cat((together, rest), 2)


def _column_sums(x: Tensor, weights: Sequence[float], *, is_fused: bool) -> Tensor:
    middle = len(weights) // 2
    height = x.shape[1] - 2 * middle
    total = x.narrow(1, middle, height) * weights[middle]
    for away in range(1, middle + 1):
        both = x.narrow(1, middle + away, height) + x.narrow(1, middle - away, height)
        total = _added(both, weights[middle + away], total, is_fused=is_fused)
    return total


def _added(x: Tensor, weight: float, total: Tensor, *, is_fused: bool) -> Tensor:
    return fused(x, weight, total) if is_fused else x * weight + total
