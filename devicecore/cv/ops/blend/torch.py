"""`cv2.addWeighted` and `cv2.convertScaleAbs` on tensors: float sums, fused as on the host."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from devicecore.cv.environment import environment
from devicecore.cv.operation import operation
from devicecore.cv.plan import Plan
from devicecore.cv.result_rules import of_bytes
from devicecore.cv.torch_support.dtypes import fma
from devicecore.cv.torch_support.fma import multiply_add
from devicecore.cv.torch_support.operands import (
    SMALL_INTEGERS,
    fills_vectors,
    is_alike,
    round_to_integers,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from devicecore.cv.image import Image, Place

    Tensor = torch.Tensor

_TYPES = SMALL_INTEGERS | {"float32"}
_SIGNIFICAND, _LONGEST_SIGNIFICAND = 24, 53  # bits of float32 and of float64
# How many values OpenCV computes at once, with AVX2, of types of so many bytes.
_AT_ONCE = {1: 16, 2: 8, 4: 8}


def _images() -> Iterator[Any]:
    chance = np.random.default_rng(9)
    for dtype in (np.uint8, np.int8, np.uint16, np.int16):
        limits = np.iinfo(dtype)
        yield chance.integers(limits.min, limits.max, (2, 7, 19, 3), dtype, endpoint=True)
    yield chance.normal(0, 50, (2, 7, 19, 3)).astype(np.float32)


def weighted_examples() -> Iterator[tuple[tuple[Any, ...], dict[str, Any]]]:
    """Yield small calls of every kind of ``cv2.addWeighted``."""
    for first, second in _images():
        for weights in ((0.7, 0.3, 0), (1.5, -0.5, 10.5), (1 / 3, 2 / 3, -0.1)):
            yield (first, weights[0], second, *weights[1:]), {}


def scaled_examples() -> Iterator[tuple[tuple[Any, ...], dict[str, Any]]]:
    """Yield small calls of every kind of ``cv2.convertScaleAbs``."""
    for first, _ in _images():
        for alpha, beta in ((1, 0), (1.5, -20.3), (0.37, 3), (1 / 257, -0.1)):
            yield (first,), {"alpha": alpha, "beta": beta}


@operation("src1", "src2", examples=weighted_examples)
def addWeighted(
    src1: Image,
    alpha: float,
    src2: Any,
    beta: float,
    gamma: float,
    dst: Place | None = None,
    dtype: int = -1,
) -> Plan | None:
    """Plan one call of ``cv2.addWeighted``."""
    if not is_alike(src1, src2) or src1.dtype not in _TYPES or src1.dtype != src2.dtype:
        return None
    weights = _floats(alpha, beta, gamma)
    is_fused = environment().has_fma
    if weights is None or dtype != -1 or not fills_vectors(src1):
        return None
    alone = _rest(src1, dst)
    if alone and not is_fused:
        return None
    if (alone or src1.dtype == "float32") and not environment().has_float_products:
        return None
    first, second, added = weights
    add = multiply_add(src1, is_fused=is_fused)
    if is_fused and src1.has_float64 and _fits_float64(src1, weights):
        add = fma

    def run(a: Tensor, b: Tensor) -> Tensor:
        x, y = a.float(), b.float()
        total = add(x, first, add(y, second, added))
        if alone:
            shape = (len(x), 1 if dst and dst.is_continuous else src1.height, -1)
            ends = [each.reshape(shape)[..., -alone:] for each in (x, y)]
            total = total.reshape(shape).clone()
            total[..., -alone:] = add(ends[0], first, ends[1] * second) + added
            total = total.view(x.shape)
        return total if a.is_floating_point() else round_to_integers(total, a.dtype)

    return Plan(run)


@operation("src", examples=scaled_examples, result=of_bytes)
def convertScaleAbs(
    src: Image,
    dst: Place | None = None,
    alpha: float = 1,
    beta: float = 0,
) -> Plan | None:
    """Plan one call of ``cv2.convertScaleAbs``."""
    weights = _floats(alpha, beta)
    if src.dtype not in _TYPES or weights is None or not fills_vectors(src):
        return None
    if dst and dst.is_operand:  # the ends of rows are then computed in another way
        return None
    factor, added = weights
    add = multiply_add(src, is_fused=environment().has_fma)

    def run(images: Tensor) -> Tensor:
        total = add(images.float(), factor, added)
        return round_to_integers(total.abs_(), torch.uint8)

    return Plan(run)


def _fits_float64(image: Image, weights: list[float]) -> bool:
    """Return whether float64 holds every sum of integers times weights, so that none is rounded."""
    if image.dtype == "float32":
        return False
    exponents = [math.frexp(each)[1] for each in weights if each]
    largest = max(exponents, default=0) + 8 * np.dtype(image.dtype).itemsize + 2
    return largest - (min(exponents, default=0) - _SIGNIFICAND) <= _LONGEST_SIGNIFICAND


def _rest(image: Image, place: Place | None) -> int:
    """Return how many values OpenCV computes one by one at the end of a row.

    Only where the result replaces an operand: elsewhere it computes the last whole vector.
    """
    if place is None or not place.is_operand:
        return 0
    row = image.width * image.channels
    at_once = _AT_ONCE[np.dtype(image.dtype).itemsize]
    return (row * image.height if place.is_continuous else row) % at_once


def _floats(*values: Any) -> list[float] | None:
    """Return numbers as float32 has them, or None where OpenCV has to judge."""
    if not all(isinstance(each, (int, float)) for each in values):
        return None
    result = [float(np.float32(each)) for each in values]
    return result if all(map(math.isfinite, result)) else None
