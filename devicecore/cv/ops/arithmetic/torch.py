"""`cv2.add`, `subtract`, `absdiff`, `multiply` and `divide` on torch tensors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from devicecore.cv.environment import environment
from devicecore.cv.operation import operation
from devicecore.cv.ops.arithmetic.scalars import floats_for, with_scalar
from devicecore.cv.plan import Plan
from devicecore.cv.result_rules import of_depth
from devicecore.cv.torch_support.dtypes import nearest_quotient, saturate
from devicecore.cv.torch_support.masks import apply_mask
from devicecore.cv.torch_support.operands import (
    SMALL_INTEGERS,
    channel_numbers,
    convert_to,
    fills_vectors,
    is_alike,
    round_to_integers,
    with_numbers,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from devicecore.cv.image import Image

    Tensor = torch.Tensor
    Combine = Callable[[Tensor, Tensor], Tensor]

_OVERFLOW = 1 << 31
# OpenCV's numbers of types.
_TARGETS = {
    0: torch.uint8,
    1: torch.int8,
    2: torch.uint16,
    3: torch.int16,
    4: torch.int32,
    5: torch.float32,
    6: torch.float64,
}


def _pairs() -> Iterator[tuple[Any, Any]]:
    chance = np.random.default_rng(7)
    for dtype in (np.uint8, np.uint16, np.int16):
        limits = np.iinfo(dtype)
        first, second = chance.integers(limits.min, limits.max, (2, 7, 19, 3), dtype, endpoint=True)
        second[::3, ::4] = 0
        yield first, second
    yield tuple(chance.normal(0, 50, (2, 7, 19, 3)).astype(np.float32))


def sum_examples() -> Iterator[tuple[tuple[Any, ...], dict[str, Any]]]:
    """Yield small calls of every kind that have no scale."""
    for first, second in _pairs():
        yield (first, second), {}
        for value in (3, 10.5, (10.5, -20.25, 300, 0)):
            yield (first, value), {}


def typed_sum_examples() -> Iterator[tuple[tuple[Any, ...], dict[str, Any]]]:
    """Yield these, and some whose results are of another type."""
    yield from sum_examples()
    for first, second in _pairs():
        for dtype in (2, 3, 4, 5, 6):
            yield (first, second), {"dtype": dtype}
            yield (first, (10.5, -20.25, 300, 0)), {"dtype": dtype}
        yield (first, second), {"mask": first.astype(np.uint8)[..., 0] & 1}


def product_examples() -> Iterator[tuple[tuple[Any, ...], dict[str, Any]]]:
    """Yield small calls of every kind that may have a scale."""
    for first, second in _pairs():
        for scale in (1, 0.37, 255, 1 / 255):
            yield (first, second), {"scale": scale}
            yield (first, (10.5, -20.25, 3, 0)), {"scale": scale}
        for dtype in (3, 4, 5):
            yield (first, second), {"dtype": dtype}
            yield (first, 0.5), {"dtype": dtype}


@operation("src1", "src2", "mask", examples=typed_sum_examples, result=of_depth("dtype"))
def add(
    src1: Image,
    src2: Any,
    dst: Any = None,
    mask: Any = None,
    dtype: int = -1,
) -> Plan | None:
    """Plan one call of ``cv2.add``."""
    return apply_mask(_sums(torch.add, src1, src2, dtype), mask, src1, dst)


@operation("src1", "src2", "mask", examples=typed_sum_examples, result=of_depth("dtype"))
def subtract(
    src1: Image,
    src2: Any,
    dst: Any = None,
    mask: Any = None,
    dtype: int = -1,
) -> Plan | None:
    """Plan one call of ``cv2.subtract``."""
    return apply_mask(_sums(torch.sub, src1, src2, dtype), mask, src1, dst)


@operation("src1", "src2", examples=sum_examples)
def absdiff(
    src1: Image,
    src2: Any,
    dst: Any = None,  # noqa: ARG001 - whoever calls kernels fills it
) -> Plan | None:
    """Plan one call of ``cv2.absdiff``."""
    return _sums(lambda a, b: (a - b).abs_(), src1, src2, -1)


@operation("src1", "src2", examples=product_examples, result=of_depth("dtype"))
def multiply(
    src1: Image, src2: Any, dst: Any = None, scale: float = 1, dtype: int = -1
) -> Plan | None:
    """Plan one call of ``cv2.multiply``."""
    target = _target(src1, dtype)
    if not is_alike(src1, src2):
        return with_scalar(src1, src2, target, scale, lambda a, b: scale * a * b)
    # Without AVX2, what does not fit uint16 becomes now the most, now the least.
    is_certain = src1.dtype != "uint16" or environment().has_fma
    if src1.dtype != src2.dtype or not is_certain or not _is_known(src1, target):
        return None
    if src1.dtype in SMALL_INTEGERS and not target.is_floating_point:
        if target is not getattr(torch, src1.dtype):
            return _products_of_integers(src1, target, scale)
        if scale == 1:
            return _whole_products(target)
    # In another order at the ends of rows that are short, or that the result replaces.
    is_regular = scale == 1 or (fills_vectors(src1) and dst is None)
    return _float_products(src1, target, float(np.float32(scale))) if is_regular else None


def _float_products(src: Image, target: torch.dtype, scale: float) -> Plan | None:
    if target is getattr(torch, src.dtype):
        return Plan(lambda a, b: convert_to(a.float() * scale * b.float(), target))
    if scale == 1 and target is torch.float32:
        return Plan(lambda a, b: a.float() * b.float())
    return None  # converted piece by piece, and the ends of those in another order


@operation("src1", "src2", examples=product_examples, result=of_depth("dtype"))
def divide(
    src1: Image,
    src2: Any,
    dst: Any = None,  # noqa: ARG001 - whoever calls kernels fills it
    scale: float = 1,
    dtype: int = -1,
) -> Plan | None:
    """Plan one call of ``cv2.divide``."""
    target = _target(src1, dtype)
    if not is_alike(src1, src2):
        return with_scalar(src1, src2, target, scale, lambda a, b: a * scale / b)
    if src1.dtype != src2.dtype or target is torch.float64 or not _is_known(src1, target):
        return None
    if target is getattr(torch, src1.dtype) or target is torch.float32:
        work, share = torch.float32, float(np.float32(scale))
    elif src1.dtype not in SMALL_INTEGERS:
        return None
    elif src1.has_float64:
        work, share = torch.float64, float(scale)
    else:
        return _whole_quotients(target) if scale == 1 else None
    return Plan(lambda a, b: convert_to(_quotient(a.to(work), b.to(work), share, target), target))


def _is_known(src: Image, target: torch.dtype) -> bool:
    """Return whether it is known how such products and quotients are rounded."""
    is_of_bytes = src.dtype == "uint8" and target is torch.uint8
    return is_of_bytes or environment().has_float_products


def _target(src: Image, dtype: int) -> torch.dtype:
    """Return the type of the result.

    Raises:
        ValueError: It is not for kernels to say.
    """
    if type(dtype) is not int or src.dtype not in SMALL_INTEGERS | {"float32"} or src.pixels == 0:
        raise ValueError
    own: torch.dtype = getattr(torch, src.dtype)
    target = _TARGETS.get(dtype) if dtype >= 0 else own
    if target is None or (own.is_floating_point and not target.is_floating_point):
        raise ValueError
    if src.lacks(target):
        raise ValueError
    return target


def _sums(combine: Combine, src1: Image, src2: Any, dtype: int) -> Plan | None:
    target = _target(src1, dtype)
    work = target if target.is_floating_point else torch.int32

    def compute(a: Tensor, b: Tensor) -> Tensor:
        return saturate(combine(a.to(work), b.to(work)), target)

    if is_alike(src1, src2):
        integers = SMALL_INTEGERS if src1.dtype in SMALL_INTEGERS else {"float32"}
        has_target = src1.dtype == src2.dtype or dtype >= 0
        return Plan(compute) if src2.dtype in integers and has_target else None
    values = channel_numbers(src2, src1, number_is_for_all=True)
    if values is None:
        return None
    if not work.is_floating_point:
        return Plan(with_numbers(compute, np.rint(values).astype(np.int32)))
    kept, promise = floats_for(src1, values)
    return Plan(with_numbers(compute, kept), promise)


def _products_of_integers(src: Image, target: torch.dtype, scale: float) -> Plan | None:
    """Plan products in another type of integers, which OpenCV computes in float64."""
    if src.has_float64:
        return Plan(lambda a, b: _as_whole(a.double() * b.double() * scale, target))
    if scale != 1:
        return None

    def run(a: Tensor, b: Tensor) -> Tensor:
        product = a.to(torch.int64) * b.to(torch.int64)
        return saturate(torch.where(product < _OVERFLOW, product, -_OVERFLOW), target)

    return Plan(run)


def _whole_quotients(target: torch.dtype) -> Plan:
    """Plan quotients of small integers, rounded half to even, without float64."""

    def run(a: Tensor, b: Tensor) -> Tensor:
        x, y = a.to(torch.int32), b.to(torch.int32)
        result = nearest_quotient(x.abs(), y.abs().clamp_(min=1))
        result = torch.where((x < 0) == (y < 0), result, -result)
        return saturate(torch.where(y == 0, 0, result), target)

    return Plan(run)


def _as_whole(x: Tensor, target: torch.dtype) -> Tensor:
    return saturate(round_to_integers(x, torch.int32), target)


def _whole_products(target: torch.dtype) -> Plan:
    """Plan products of integers, which overflow as those of int32 do."""
    if target is not torch.uint16:
        return Plan(lambda a, b: saturate(a.to(torch.int32) * b.to(torch.int32), target))
    half = 1 << 31

    def run(a: Tensor, b: Tensor) -> Tensor:
        product = a.to(torch.int64) * b.to(torch.int64)
        return saturate(((product + half) & 0xFFFFFFFF) - half, target)

    return Plan(run)


def _quotient(a: Tensor, b: Tensor, scale: float, target: torch.dtype) -> Tensor:
    """Return ``a * scale / b``; what is divided by 0 is 0 in integers."""
    result = a * scale / b
    return result if target.is_floating_point else torch.where(b == 0, 0.0, result)
