"""`cv2.pow`, `sqrt`, `exp`, `log` and `magnitude` on torch tensors."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from devicecore.cv.environment import environment
from devicecore.cv.operation import operation
from devicecore.cv.ops.arithmetic.torch import multiply
from devicecore.cv.plan import Plan
from devicecore.cv.torch_support.error_free import rounded_root
from devicecore.cv.torch_support.operands import SMALL_INTEGERS, is_alike

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from devicecore.cv.image import Image
    from devicecore.kernels import Exactness

    Tensor = torch.Tensor

_FLOATS = frozenset({"float32", "float64"})
# Powers that are nearer to a whole number, or to a root, are that.
_NEAR = float(np.finfo(np.float64).eps)
_LARGEST_POWER = 1 << 20
_WORD = 1 << 32


def _images() -> Iterator[Any]:
    chance = np.random.default_rng(33)
    for dtype in sorted(_FLOATS):
        yield (chance.random((7, 19, 3)) * 9 + 0.01).astype(dtype)


def examples() -> Iterator[tuple[tuple[Any, ...], dict[str, Any]]]:
    """Yield small calls of functions of one image."""
    for image in _images():
        yield (image,), {}


def power_examples() -> Iterator[tuple[tuple[Any, ...], dict[str, Any]]]:
    """Yield small calls of every kind of ``cv2.pow``."""
    for image in _images():
        for power in (0, 1, 2, 3, 5, -1, -2, 0.5, -0.5, 1 / 2.2, 2.4):
            yield (image, power), {}
    for dtype in ("uint8", "int8", "uint16", "int16"):
        image = np.arange(0, 256, dtype=np.uint8).view(np.int8).reshape(16, 16).astype(dtype)
        for power in (0, 1, 2, 3, 4, 7):
            yield (image, power), {}


def pair_examples() -> Iterator[tuple[tuple[Any, ...], dict[str, Any]]]:
    """Yield small calls of ``cv2.magnitude``."""
    for image in _images():
        yield (image, image[::-1].copy()), {}


@operation("src", examples=examples)
def exp(
    src: Image,
    dst: Any = None,  # noqa: ARG001 - whoever calls kernels fills it
) -> Plan | None:
    """Plan one call of ``cv2.exp``."""
    return _in_wide_floats(src, torch.exp)


@operation("src", examples=examples)
def log(
    src: Image,
    dst: Any = None,  # noqa: ARG001 - whoever calls kernels fills it
) -> Plan | None:
    """Plan one call of ``cv2.log``."""
    return _in_wide_floats(src, torch.log)


@operation("src", examples=examples)
def sqrt(
    src: Image,
    dst: Any = None,  # noqa: ARG001 - whoever calls kernels fills it
) -> Plan | None:
    """Plan one call of ``cv2.sqrt``."""
    return _root(src)


@operation("x", "y", examples=pair_examples)
def magnitude(
    x: Image,
    y: Image,
    magnitude: Any = None,  # noqa: ARG001 - whoever calls kernels fills it
) -> Plan | None:
    """Plan one call of ``cv2.magnitude``."""
    if x.dtype not in _FLOATS or not is_alike(x, y) or x.dtype != y.dtype:
        return None

    def run(a: Tensor, b: Tensor) -> Tensor:
        if not x.has_float64:
            return (a.square() + b.square()).sqrt_()
        return (a.double().square() + b.double().square()).sqrt_().to(a.dtype)

    return Plan(run, "tolerance")


@operation("src", examples=power_examples)
def pow(  # noqa: A001 - OpenCV's name
    src: Image,
    power: float,
    dst: Any = None,
) -> Plan | None:
    """Plan one call of ``cv2.pow``; what has no power is not a number."""
    if not math.isfinite(power) or abs(power) > _LARGEST_POWER:
        return None
    whole = round(power)
    if abs(whole - power) < _NEAR:
        return _whole_power(src, whole, dst)
    if src.dtype not in _FLOATS:
        return None
    if abs(power - 0.5) < _NEAR:
        return _root(src)
    return _in_wide_floats(src, lambda x: x.pow(power))


def _in_wide_floats(src: Image, compute: Callable[[Tensor], Tensor]) -> Plan | None:
    """Plan a function in float64, or in float32 where a device has no wider type."""
    if src.dtype not in _FLOATS or not src.pixels:
        return None
    if not src.has_float64:
        return Plan(compute, "tolerance")
    return Plan(lambda x: compute(x.double()).to(x.dtype), "tolerance")


def _root(src: Image) -> Plan | None:
    if src.dtype not in _FLOATS or not src.pixels:
        return None
    if not src.has_float64:
        return Plan(rounded_root)
    # No float32 has a root so near to the middle of two that it would be rounded twice.
    promise: Exactness = "exact" if src.dtype == "float32" else "tolerance"
    return Plan(lambda x: x.double().sqrt().to(x.dtype), promise)


def _whole_power(src: Image, power: int, dst: Any) -> Plan | None:
    types = SMALL_INTEGERS | _FLOATS if environment().has_float_products else _FLOATS
    if src.dtype not in types or not src.pixels:
        return None
    if power == 0:
        return Plan(torch.ones_like) if src.channels <= 4 else None
    if power == 1:
        return Plan(torch.clone)
    if power == 2 and src.dtype != "float64":
        return _square(multiply.planner(src, src, dst))
    if src.dtype in _FLOATS:
        return Plan(lambda x: _multiplied(x if power > 0 else 1 / x, abs(power), lambda y: y))
    return _power_of_integers(src, power) if power > 0 else None


def _square(product: Plan | None) -> Plan | None:
    if product is None:
        return None
    multiplied = product.run
    return Plan(lambda x: multiplied(x, x), product.promise)


def _power_of_integers(src: Image, power: int) -> Plan:
    """Plan powers that overflow as OpenCV's words of 32 bits do."""
    limits = np.iinfo(src.dtype)
    half = _WORD // 2 if limits.min < 0 else 0

    def cut(x: Tensor) -> Tensor:
        return ((x + half) & (_WORD - 1)) - half

    def run(images: Tensor) -> Tensor:
        result = _multiplied(images.to(torch.int64), power, cut)
        return result.clamp_(limits.min, limits.max).to(images.dtype)

    return Plan(run)


def _multiplied(x: Tensor, power: int, cut: Callable[[Tensor], Tensor]) -> Tensor:
    """Return a power by squaring, in the order of OpenCV's products."""
    result: Tensor | None = None
    while power > 1:
        if power & 1:
            result = x if result is None else cut(result * x)
        x = cut(x * x)
        power >>= 1
    return cut(x) if result is None else cut(result * x)
