"""Correlation with a kernel, rounded as `cv2.filter2D` and `cv2.sepFilter2D` do."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from devicecore.cv.environment import environment
from devicecore.cv.ops.filter.tables import stays_exact, whole_weights
from devicecore.cv.plan import Plan
from devicecore.cv.table import Table
from devicecore.cv.torch_support.dtypes import saturate
from devicecore.cv.torch_support.fma import MultiplyAdd, multiply_add, multiply_then_add
from devicecore.cv.torch_support.windows import vector_tail, weighted_sum

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from devicecore.cv.image import Image
    from devicecore.cv.torch_support.windows import Window

    Tensor = torch.Tensor
    Taps = Sequence[tuple[int, int, float]]

# By the type of the image: OpenCV's numbers of the types that a result may have.
_TARGETS = {
    "uint8": {-1: torch.uint8, 0: torch.uint8, 2: torch.uint16, 3: torch.int16, 5: torch.float32},
    "uint16": {-1: torch.uint16, 2: torch.uint16, 5: torch.float32},
    "int16": {-1: torch.int16, 3: torch.int16, 5: torch.float32},
    "float32": {-1: torch.float32, 5: torch.float32},
}
_LARGEST = {"uint8": 255, "uint16": 65535, "int16": 32768}
# Where OpenCV's sums are fused, in groups of so many values of a row; what they leave is not, nor
# are other sums. The compiler chose some of these, so they hold for the builds that were compared.
_FUSED_GROUPS = {
    ("uint8", torch.uint8): 4,
    ("uint8", torch.uint16): 4,
    ("uint8", torch.int16): 4,
    ("uint16", torch.uint16): 4,
    ("int16", torch.int16): 4,
    ("float32", torch.float32): 8,
}
_IN_VECTORS = frozenset(
    {("uint8", torch.uint8), ("uint8", torch.int16), ("float32", torch.float32)}
)
# From so many weights on, OpenCV goes through Fourier transforms.
_LARGE, _LARGE_IN_VECTORS = 50, 130
_FIXED_BITS = 8


def target_of(src: Image, depth: int) -> torch.dtype | None:
    """Return the type of a result, or None where OpenCV has to judge."""
    result = _TARGETS.get(src.dtype, {}).get(depth) if src.pixels else None
    return None if result is None or src.lacks(result) else result


def correlation(
    src: Image,
    target: torch.dtype,
    kernel: np.ndarray[Any, Any],
    area: Window,
    delta: float,
    border_type: int,
) -> Plan | None:
    """Plan ``cv2.filter2D``, up to kernels that OpenCV transforms.

    Args:
        src: The images.
        target: The type of the result.
        kernel: Weights of shape (height, width).
        area: Their window.
        delta: What is added.
        border_type: What stands outside of an image.
    """
    types = src.dtype, target
    if kernel.size >= (_LARGE_IN_VECTORS if types in _IN_VECTORS else _LARGE):
        return None
    result = whole_correlation(src, target, kernel, area, delta, border_type)
    if result is not None or environment().version != (5, 0) or not environment().is_x86:
        return result
    weights = kernel.astype(np.float32)
    if not weights.any():
        return None
    return _in_floats(src, target, _taps(weights), area, float(np.float32(delta)), border_type)


def whole_correlation(
    src: Image,
    target: torch.dtype,
    kernel: np.ndarray[Any, Any],
    area: Window,
    delta: float,
    border_type: int,
) -> Plan | None:
    """Plan the same where all sums are exact, whatever their order."""
    whole, largest = whole_weights(kernel.astype(np.float32)), _LARGEST.get(src.dtype, math.inf)
    if whole is None or not whole.total:
        return None
    if not stays_exact(largest, whole.total, delta, whole.bits):
        return None
    taps, added = _taps(whole.values), int(delta * (1 << whole.bits))
    return _exact(lambda x: _summed(x, taps, src), whole.bits, added, area, border_type, target)


def _in_floats(
    src: Image, target: torch.dtype, taps: Taps, area: Window, added: float, border_type: int
) -> Plan:
    """Plan sums that are rounded at each tap."""
    group = _FUSED_GROUPS.get((src.dtype, target), 0)
    is_fused = bool(group) and environment().has_fma
    add = multiply_add(src, is_fused=is_fused)
    left_over = vector_tail(src.width, src.channels, group) if is_fused else None
    is_short = src.has_float64 and _fits_doubles(taps, _LARGEST.get(src.dtype, math.inf), added)
    tail = None if left_over is None else Table(left_over[left_over.any(1).argmax() :])

    def run(images: Tensor) -> Tensor:
        x = area.around(images, border_type).to(torch.float32)
        if is_fused and is_short:
            result = _in_doubles(_parts(x.double(), taps, src.height, src.width), added)
        else:
            result = _added_up(_parts(x, taps, src.height, src.width), added, add)
        if tail is not None:
            last = len(tail.host)
            end = x[:, :, src.width - last :]
            plain = _added_up(_parts(end, taps, src.height, last), added, multiply_then_add)
            result[:, :, -last:] = torch.where(tail.on(x), plain, result[:, :, -last:])
        return saturate(result, target)

    return Plan(run)


def _fits_doubles(taps: Taps, largest: float, added: float) -> bool:
    """Return whether no sum of whole pixels by weight is rounded in float64."""
    terms = [abs(each) for _, _, each in taps] + ([abs(added)] if added else [])
    finest = min(float(np.spacing(np.float32(each))) for each in terms)
    return largest * sum(terms) < finest * 2**52


def separable(
    src: Image,
    target: torch.dtype,
    kernels: tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]],
    area: Window,
    delta: float,
    border_type: int,
) -> Plan | None:
    """Plan ``cv2.sepFilter2D`` where all its sums are exact.

    Args:
        src: The images.
        target: The type of the result.
        kernels: Weights along rows, and along columns.
        area: Their window.
        delta: What is added.
        border_type: What stands outside of an image.
    """
    if not all(np.array_equal(each, each.astype(np.float32)) for each in kernels):
        return None
    across, down = map(whole_weights, kernels)
    if across is None or down is None or src.dtype not in _LARGEST:
        return None
    bits = across.bits + down.bits
    if not stays_exact(_LARGEST[src.dtype], across.total * down.total, delta, bits):
        return None
    is_fixed = src.dtype == "uint8" and target is torch.uint8
    is_fixed = is_fixed and all(map(_is_smooth, kernels)) and _is_centred(area)
    # OpenCV takes whole numbers for another kind of kernel.
    is_fixed = is_fixed and all(0 < each.bits <= _FIXED_BITS for each in (across, down))
    horizontal, vertical = across.values.tolist(), down.values.tolist()

    def summed(x: Tensor) -> Tensor:
        return weighted_sum(weighted_sum(x, 2, horizontal), 1, vertical)

    added = int(delta * (1 << bits))
    lanes = 16 if environment().has_fma else 8  # with AVX2, and without
    tail = vector_tail(src.width, src.channels, lanes) if is_fixed and bits else None
    return _exact(summed, bits, added, area, border_type, target, tail)


def _exact(
    summed: Callable[[Tensor], Tensor],
    bits: int,
    added: int,
    area: Window,
    border_type: int,
    target: torch.dtype,
    half_up: np.ndarray[Any, Any] | None = None,
) -> Plan:
    """Plan sums of integers; halves go to the even value, or up where *half_up* says so."""
    table = None if half_up is None else Table(half_up)

    def run(images: Tensor) -> Tensor:
        total = summed(area.around(images, border_type).to(torch.int32)) + added
        if bits == 0:
            return saturate(total, target)
        result = saturate(total.to(torch.float32) * 2.0**-bits, target)
        if table is None:
            return result
        up = saturate((total + (1 << (bits - 1))).bitwise_right_shift_(bits), target)
        return torch.where(table.on(total), up, result)

    return Plan(run)


def _taps(weights: np.ndarray[Any, Any]) -> list[tuple[int, int, Any]]:
    """Return row, column and weight of what is not 0, row by row."""
    return [(int(y), int(x), weights[y, x].item()) for y, x in zip(*weights.nonzero(), strict=True)]


def _summed(x: Tensor, taps: Taps, src: Image) -> Tensor:
    total = None
    for part, weight in _parts(x, taps, src.height, src.width):
        total = part * weight if total is None else total.add_(part, alpha=weight)
    assert total is not None  # kernels of zeros are not planned
    return total


def _parts(x: Tensor, taps: Taps, height: int, width: int) -> Iterator[tuple[Tensor, float]]:
    """Yield each weight after what it is for."""
    for top, left, weight in taps:
        yield x[:, top : top + height, left : left + width], weight


def _added_up(parts: Iterator[tuple[Tensor, float]], added: float, add: MultiplyAdd) -> Tensor:
    total: Any = added
    for part, weight in parts:
        total = add(part, weight, total)
    result: Tensor = total
    return result


def _in_doubles(parts: Iterator[tuple[Tensor, float]], added: float) -> Tensor:
    """Return the same where float64 has room for each sum before it is rounded."""
    total: Any = added
    for part, weight in parts:
        total = (part * weight + total).float().double()
    result: Tensor = total.float()
    return result


def _is_smooth(kernel: np.ndarray[Any, Any]) -> bool:
    """Return whether weights are a symmetrical mean."""
    is_even = bool(np.array_equal(kernel, kernel[::-1]))
    return is_even and bool((kernel >= 0).all()) and float(kernel.sum(dtype=np.float64)) == 1


def _is_centred(area: Window) -> bool:
    return (2 * area.left + 1, 2 * area.top + 1) == (area.width, area.height)
