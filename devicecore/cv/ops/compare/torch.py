"""`cv2.min`, `max`, `compare` and `inRange` on torch tensors."""

from __future__ import annotations

import builtins
import math
from typing import TYPE_CHECKING, Any

import cv2
import numpy as np
import torch

from devicecore.cv.operation import operation
from devicecore.cv.plan import Plan
from devicecore.cv.result_rules import like, of_bytes
from devicecore.cv.torch_support.operands import (
    SMALL_INTEGERS,
    channel_numbers,
    is_alike,
    with_numbers,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from devicecore.cv.image import Image
    from devicecore.cv.result_rules import ArrayInfo

    Tensor = torch.Tensor
    Combine = Callable[[Tensor, Tensor], Tensor]

# No small integer is as large.
_BEYOND = 1 << 20
_TYPES = SMALL_INTEGERS | {"float32"}
_COMPARISONS: dict[int, Callable[..., Tensor]] = {
    cv2.CMP_EQ: torch.eq,
    cv2.CMP_GT: torch.gt,
    cv2.CMP_GE: torch.ge,
    cv2.CMP_LT: torch.lt,
    cv2.CMP_LE: torch.le,
    cv2.CMP_NE: torch.ne,
}


def _pairs() -> Iterator[Any]:
    chance = np.random.default_rng(8)
    for dtype in (np.uint8, np.int8, np.uint16, np.int16):
        yield chance.integers(0, 100, (2, 5, 9, 3), dtype)
    yield chance.normal(50, 50, (2, 5, 9, 3)).astype(np.float32)


def choice_examples() -> Iterator[tuple[tuple[Any, ...], dict[str, Any]]]:
    """Yield small calls of every kind of ``cv2.min`` and ``cv2.max``."""
    for first, second in _pairs():
        for value in (second, 60, (10.5, -20.25, 300, 0)):
            yield (first, value), {}


def comparison_examples() -> Iterator[tuple[tuple[Any, ...], dict[str, Any]]]:
    """Yield small calls of every kind of ``cv2.compare``."""
    for first, second in _pairs():
        for comparison in _COMPARISONS:
            for value in (second, 60, 50.5, -3):
                yield (first, value, comparison), {}


def range_examples() -> Iterator[tuple[tuple[Any, ...], dict[str, Any]]]:
    """Yield small calls of every kind of ``cv2.inRange``."""
    for first, second in _pairs():
        yield (first, first, second), {}
        yield (first, (10.5, -20.25, 0, 0), (60, 70.5, 300, 0)), {}
        yield (first[..., 0].copy(), 20, 60.5), {}


def _plane_of_bytes(given: Mapping[str, Any]) -> tuple[ArrayInfo, ...]:
    return (like(given["src"], channels=1, dtype="uint8"),)


@operation("src1", "src2", examples=choice_examples)
def min(  # noqa: A001 - OpenCV's name
    src1: Image,
    src2: Any,
    dst: Any = None,  # noqa: ARG001 - whoever calls kernels fills it
) -> Plan | None:
    """Plan one call of ``cv2.min``."""
    return _choice(torch.lt, src1, src2)


@operation("src1", "src2", examples=choice_examples)
def max(  # noqa: A001 - OpenCV's name
    src1: Image,
    src2: Any,
    dst: Any = None,  # noqa: ARG001 - whoever calls kernels fills it
) -> Plan | None:
    """Plan one call of ``cv2.max``."""
    return _choice(torch.gt, src1, src2)


def _choice(is_taken: Combine, src1: Image, src2: Any) -> Plan | None:
    """Plan the choice of one of two values; without order, it is the second one."""
    if src1.dtype not in _TYPES:
        return None
    work = _work(src1)

    def compute(a: Tensor, b: Tensor) -> Tensor:
        x, y = a.to(work), b.to(work)
        return torch.where(is_taken(x, y), x, y).to(a.dtype)

    if is_alike(src1, src2):
        return Plan(compute) if src1.dtype == src2.dtype else None
    values = channel_numbers(src2, src1, number_is_for_all=False)
    return None if values is None else Plan(with_numbers(compute, _in_type(values, src1)))


@operation("src1", "src2", examples=comparison_examples, result=of_bytes)
def compare(
    src1: Image,
    src2: Any,
    cmpop: int,
    dst: Any = None,  # noqa: ARG001 - whoever calls kernels fills it
) -> Plan | None:
    """Plan one call of ``cv2.compare``."""
    comparison = _COMPARISONS.get(cmpop)
    if comparison is None or src1.dtype not in _TYPES:
        return None
    if is_alike(src1, src2):
        work = _work(src1)
        same = src1.dtype == src2.dtype
        return Plan(lambda a, b: _mask(comparison(a.to(work), b.to(work)))) if same else None
    if type(src2) not in {int, float}:
        return None
    values = channel_numbers(src2, src1, number_is_for_all=True)
    if values is None:
        return None
    if src1.dtype == "float32":
        single = float(np.float32(values[0]))
        return Plan(lambda a: _mask(comparison(a, single)))
    # Twice as large, what lies between two whole numbers is a whole number, too.
    double = 2 * math.floor(values[0]) + (not values[0].is_integer())
    double = builtins.max(-_BEYOND, builtins.min(double, _BEYOND))
    return Plan(lambda a: _mask(comparison(a.to(torch.int32) * 2, double)))


@operation("src", "lowerb", "upperb", examples=range_examples, result=_plane_of_bytes)
def inRange(
    src: Image,
    lowerb: Any,
    upperb: Any,
    dst: Any = None,  # noqa: ARG001 - whoever calls kernels fills it
) -> Plan | None:
    """Plan one call of ``cv2.inRange``."""
    if src.dtype not in _TYPES:
        return None
    work = _work(src)

    def compute(x: Tensor, low: Tensor, high: Tensor) -> Tensor:
        value = x.to(work)
        inside = (value >= low.to(work)) & (value <= high.to(work))
        return _mask(inside.all(-1, keepdim=True))

    if is_alike(src, lowerb) and is_alike(src, upperb):
        return Plan(compute) if src.dtype == lowerb.dtype == upperb.dtype else None
    bounds = [channel_numbers(each, src, number_is_for_all=False) for each in (lowerb, upperb)]
    if None in bounds or isinstance(lowerb, tuple) != isinstance(upperb, tuple):
        return None
    array = np.array(bounds)
    array = array.astype(np.float32) if src.dtype == "float32" else np.rint(array).astype(np.int32)
    return Plan(with_numbers(lambda x, limits: compute(x, *limits), array))


def _work(image: Image) -> torch.dtype:
    """Return a type that every device compares."""
    return torch.float32 if image.dtype == "float32" else torch.int32


def _mask(is_set: Tensor) -> Tensor:
    return is_set.to(torch.uint8).mul_(255)


def _in_type(values: list[float], image: Image) -> Any:
    """Return numbers as an image of that type would hold them."""
    if image.dtype == "float32":
        return np.array(values, np.float32)
    limits = np.iinfo(image.dtype)
    return np.rint(values).clip(limits.min, limits.max).astype(np.int32)
