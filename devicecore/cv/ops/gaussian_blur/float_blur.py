"""Gaussian blurs of float32, with the roundings of `cv2.GaussianBlur`.

Which sums are fused is what OpenCV's source says, and of the ends of rows, what was found by
comparing: there it is the compiler's choice.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import cv2
import torch

from devicecore.cv.torch_support.fma import MultiplyAdd, multiply_then_add
from devicecore.cv.torch_support.windows import window

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    Tensor = torch.Tensor
    Weights = Sequence[float]

# Values of a row that are computed together, along rows and along columns. What they leave over
# has other roundings, and there, taps in groups of so many are not fused.
_ACROSS, _DOWN, _TAPS = 4, 8, 4
# Kernels up to these lengths have loops of their own, which use that they are symmetric; the one
# along rows computes pairs of values.
_SMALL_ACROSS, _SMALL_DOWN, _PAIR = 5, 3, 2


def float_weights(sizes: tuple[int, int], sigmas: tuple[float, float]) -> list[list[float]]:
    """Return the weights along rows and along columns.

    Args:
        sizes: How many weights there are, both odd.
        sigmas: 0 for what the sizes say.
    """
    return [
        [1.0] if size == 1 else cv2.getGaussianKernel(size, sigma, cv2.CV_32F).ravel().tolist()
        for size, sigma in zip(sizes, sigmas, strict=True)
    ]


def gaussian_blur(
    across: Weights, down: Weights, border_type: int, add: MultiplyAdd
) -> Callable[[Tensor], Tensor]:
    """Return what blurs images of float32.

    Args:
        across: The weights along rows.
        down: The weights along columns.
        border_type: What stands outside of an image.
        add: What multiplies and adds as the processor does, from `multiply_add`.
    """
    area = window((len(across), len(down)))

    def run(images: Tensor) -> Tensor:
        x = area.around(images, border_type).flatten(2)
        rows = _along_rows(x, across, images.shape[3], add)
        return _along_columns(rows, down, add).view(images.shape)

    return run


def _along_rows(x: Tensor, taps: Weights, step: int, add: MultiplyAdd) -> Tensor:
    """Return sums of values that are *step* apart."""
    width = x.shape[2] - (len(taps) - 1) * step
    parts = [x.narrow(2, place * step, width) for place in range(len(taps))]
    if len(taps) == 1:
        return parts[0]
    if len(taps) <= _SMALL_ACROSS:
        return _small_rows(parts, taps, add)
    if add is multiply_then_add:
        return _row_sums(parts, taps, slice(None), len(taps), add)
    whole = width - width % _ACROSS
    not_fused = (len(taps) - 1) // _TAPS * _TAPS
    together = _row_sums(parts, taps, slice(whole), 0, add)
    rest = _row_sums(parts, taps, slice(whole, None), not_fused, add)
    return torch.cat((together, rest), 2)


def _row_sums(
    parts: Sequence[Tensor], taps: Weights, which: slice, not_fused: int, add: MultiplyAdd
) -> Tensor:
    """Return sums for some of the values, whose taps are fused after the first ones."""
    total = parts[0][..., which] * taps[0]
    for place, (part, tap) in enumerate(zip(parts[1:], taps[1:], strict=True), 1):
        total = (add if place > not_fused else multiply_then_add)(part[..., which], tap, total)
    return total


def _small_rows(parts: Sequence[Tensor], taps: Weights, add: MultiplyAdd) -> Tensor:
    middle = len(taps) // 2
    centre, near = parts[middle], parts[middle - 1] + parts[middle + 1]
    inner, outer = taps[middle], taps[middle + 1]
    far = parts[0] + parts[-1]
    total = add(centre, inner, near * outer)
    if middle > 1:
        total = add(far, taps[-1], total)
    width = total.shape[2]
    if add is not multiply_then_add and width % _PAIR:
        last = slice(width - 1, None)
        rest = centre[..., last] * inner
        rest = (add if middle == 1 else multiply_then_add)(near[..., last], outer, rest)
        if middle > 1:
            rest = far[..., last] * taps[-1] + rest
        total = torch.cat((total[..., :-1], rest), 2)
    return total


def _along_columns(x: Tensor, taps: Weights, add: MultiplyAdd) -> Tensor:
    if add is multiply_then_add or len(taps) <= _SMALL_DOWN:
        return _column_sums(x, taps, add)
    width = x.shape[2]
    whole = width - width % _DOWN
    together = _column_sums(x.narrow(2, 0, whole), taps, add)
    rest = _column_sums(x.narrow(2, whole, width - whole), taps, multiply_then_add)
    return torch.cat((together, rest), 2)


def _column_sums(x: Tensor, taps: Weights, add: MultiplyAdd) -> Tensor:
    middle = len(taps) // 2
    height = x.shape[1] - 2 * middle
    total = x.narrow(1, middle, height) * taps[middle]
    for away in range(1, middle + 1):
        both = x.narrow(1, middle + away, height) + x.narrow(1, middle - away, height)
        total = add(both, taps[middle + away], total)
    return total
