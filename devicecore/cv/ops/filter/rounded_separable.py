"""`cv2.sepFilter2D` of bytes with kernels such as Gaussian ones, whose sums are rounded in float32.

Which sums are fused was found by comparing; some of it is the compiler's choice.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from devicecore.cv.environment import environment
from devicecore.cv.plan import Plan
from devicecore.cv.table import Table
from devicecore.cv.torch_support.fma import MultiplyAdd, multiply_add, multiply_then_add
from devicecore.cv.torch_support.operands import round_to_integers
from devicecore.cv.torch_support.windows import vector_tail

if TYPE_CHECKING:
    from devicecore.cv.image import Image
    from devicecore.cv.torch_support.windows import Window

    Tensor = torch.Tensor

_VECTOR, _GROUP = 32, 4
# OpenCV takes kernels for fixed-point ones that are nearer to it than this, in parts of 256.
_NEAR = 10 * float(np.finfo(np.float32).eps) * 256


def rounded_separable(
    src: Image,
    kernels: tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]],
    area: Window,
    delta: float,
    border_type: int,
) -> Plan | None:
    """Plan it for images of bytes that stay bytes, with a symmetrical kernel along columns.

    Args:
        src: The images.
        kernels: Weights along rows, and along columns.
        area: Their window.
        delta: What is added.
        border_type: What stands outside of an image.
    """
    here = environment()
    is_centred = (2 * area.left + 1, 2 * area.top + 1) == (area.width, area.height)
    if src.dtype != "uint8" or not is_centred or here.version != (5, 0) or not here.is_x86:
        return None
    if not np.array_equal(kernels[1], kernels[1][::-1]) or all(map(_is_near_fixed, kernels)):
        return None
    across, down = (each.astype(np.float32).tolist() for each in kernels)
    has_fma, added = here.has_fma, float(np.float32(delta))
    in_vectors = _tail(src, _VECTOR) if has_fma else None
    in_groups = _tail(src, _GROUP) if has_fma else None
    add = multiply_add(src, is_fused=has_fma)

    def run(images: Tensor) -> Tensor:
        x = area.around(images, border_type).to(torch.float32)
        rows = _along_rows(x, across, add)
        if in_vectors is not None:
            rows = torch.where(in_vectors.on(x), _along_rows(x, across, multiply_then_add), rows)
        result = _along_columns(rows, down, added, add, add)
        if in_groups is not None:
            end = _along_columns(rows, down, added, add, multiply_then_add)
            result = torch.where(in_groups.on(x), end, result)
        return round_to_integers(result, torch.uint8)

    return Plan(run)


def _tail(src: Image, lanes: int) -> Table | None:
    left_over = vector_tail(src.width, src.channels, lanes)
    return None if left_over is None else Table(left_over)


def _is_near_fixed(kernel: np.ndarray[Any, Any]) -> bool:
    scaled = kernel.astype(np.float64) * 256
    return bool((np.abs(scaled - np.rint(scaled)) <= 2 * _NEAR).all())


def _along_rows(x: Tensor, weights: list[float], add: MultiplyAdd) -> Tensor:
    width = x.shape[2] - len(weights) + 1
    total = x[:, :, :width] * weights[0]
    for place, weight in enumerate(weights[1:], 1):
        total = add(x[:, :, place : place + width], weight, total)
    return total


def _along_columns(
    x: Tensor, weights: list[float], added: float, add_first: MultiplyAdd, add: MultiplyAdd
) -> Tensor:
    middle = len(weights) // 2
    height = x.shape[1] - 2 * middle
    centre = x[:, middle : middle + height]
    total = add_first(centre, weights[middle], added)
    for away in range(1, middle + 1):
        below, above = middle + away, middle - away
        both = x[:, below : below + height] + x[:, above : above + height]
        total = add(both, weights[below], total)
    return total
