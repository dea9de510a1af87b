"""`cv2.transform` and `perspectiveTransform` on torch tensors: channels times a matrix."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from devicecore.cv.environment import environment
from devicecore.cv.operation import operation
from devicecore.cv.plan import Plan
from devicecore.cv.result_rules import like
from devicecore.cv.torch_support.float_pairs import FloatPair, as_pair, constant
from devicecore.cv.torch_support.fma import MultiplyAdd, multiply_add, multiply_then_add
from devicecore.cv.torch_support.operands import round_to_integers

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from devicecore.cv.image import Image
    from devicecore.cv.result_rules import ArrayInfo
    from devicecore.kernels import Exactness

    Tensor = torch.Tensor

# The numbers of coordinates before and after, which OpenCV has formulas of their own for.
_COORDINATES = frozenset({(2, 2), (3, 3), (3, 2)})
_MATRIX_TYPES = frozenset({np.dtype("float32"), np.dtype("float64")})
_MOST_CHANNELS = 4
# Channels before and after for which OpenCV has loops of their own, with other roundings.
_SPECIAL = frozenset({(2, 2), (3, 3), (4, 4), (3, 1)})
# Of three bytes to three: bits after the point, and the largest factors of that kind.
_BITS, _LARGEST, _LARGEST_LAST = 10, 32, 8192
_OVERFLOW = 1 << 31
# Points whose divisor is nearer to 0 become 0.
_NEAR = float(np.finfo(np.float32).eps)


def image_examples() -> Iterator[tuple[tuple[Any, ...], dict[str, Any]]]:
    """Yield small calls of every kind of ``cv2.transform``."""
    chance = np.random.default_rng(23)
    for before in range(1, _MOST_CHANNELS + 1):
        for dtype in (np.uint8, np.float32):
            image = chance.integers(0, 256, (13, 19, before)).astype(dtype)
            for after in range(1, _MOST_CHANNELS + 1):
                yield (image, chance.random((after, before))), {}
                yield (image, chance.normal(0, 9, (after, before + 1))), {}


def examples() -> Iterator[tuple[tuple[Any, ...], dict[str, Any]]]:
    """Yield small calls of every kind."""
    chance = np.random.default_rng(21)
    for before, after in sorted(_COORDINATES):
        points = chance.normal(0, 50, (19, 1, before)).astype(np.float32)
        for dtype in (np.float32, np.float64):
            yield (points, chance.normal(size=(after + 1, before + 1)).astype(dtype)), {}


def _of_points(given: Mapping[str, Any]) -> tuple[ArrayInfo, ...]:
    return (like(given["src"], channels=len(given["m"]) - 1),)


def _of_matrix(given: Mapping[str, Any]) -> tuple[ArrayInfo, ...]:
    return (like(given["src"], channels=len(given["m"])),)


@operation("src", examples=examples, result=_of_points)
def perspectiveTransform(
    src: Image,
    m: Any,
    dst: Any = None,  # noqa: ARG001 - whoever calls kernels fills it
) -> Plan | None:
    """Plan one call of ``cv2.perspectiveTransform`` of points of float32."""
    if src.dtype != "float32" or not isinstance(m, np.ndarray) or m.dtype not in _MATRIX_TYPES:
        return None
    if m.ndim != 2 or m.shape[1] != src.channels + 1:
        return None
    if (src.channels, m.shape[0] - 1) not in _COORDINATES or not np.isfinite(m).all():
        return None
    *rows, divisor = m.astype(np.float64).tolist()
    if not src.has_float64:
        return Plan(lambda images: _in_perspective(images, rows, divisor), "tolerance")

    def run(images: Tensor) -> Tensor:
        # Sums of float64, as OpenCV computes them, one product after the other.
        places = images.double().unbind(-1)
        below = _row(places, divisor)
        is_zero = ~(below.abs() > _NEAR)  # also of what is not a number
        share = torch.where(is_zero, 1.0, below).reciprocal()
        result = torch.stack([_row(places, each) * share for each in rows], -1)
        return result.masked_fill(is_zero[..., None], 0).float()

    return Plan(run)


@operation("src", examples=image_examples, result=_of_matrix)
def transform(
    src: Image,
    m: Any,
    dst: Any = None,  # noqa: ARG001 - whoever calls kernels fills it
) -> Plan | None:
    """Plan one call of ``cv2.transform`` of images of bytes or float32."""
    if src.dtype not in {"uint8", "float32"} or not 1 <= src.channels <= _MOST_CHANNELS:
        return None
    if not isinstance(m, np.ndarray) or m.dtype not in _MATRIX_TYPES or m.ndim != 2:
        return None
    before, after = src.channels, m.shape[0]
    is_one = before == after == 1  # another function of OpenCV
    if is_one or not 1 <= after <= _MOST_CHANNELS or m.shape[1] - before not in {0, 1}:
        return None
    matrix = np.zeros((after, before + 1), np.float32)
    matrix[:, : m.shape[1]] = m
    here = environment()
    if not np.isfinite(matrix).all() or here.version != (5, 0) or not here.is_x86:
        return None
    return _of_bytes(matrix) if src.dtype == "uint8" else _of_floats(src, matrix)


def _of_bytes(matrix: np.ndarray[Any, Any]) -> Plan | None:
    after, columns = matrix.shape
    sizes = np.abs(matrix.astype(np.float64))
    if (255 * sizes[:, :-1].sum(1) + sizes[:, -1]).max() >= _OVERFLOW / 2:
        return None
    largest = [_LARGEST, _LARGEST, _LARGEST_LAST, _LARGEST_LAST]
    if matrix.shape == (3, 4) and (sizes < largest).all() and not _is_diagonal(matrix):
        return _in_fixed_point(matrix)
    promise: Exactness = "lsb1" if (columns - 1, after) in _SPECIAL else "exact"
    sums = _sums(matrix, multiply_then_add)
    return Plan(lambda images: round_to_integers(sums(images.float()), torch.uint8), promise)


def _of_floats(src: Image, matrix: np.ndarray[Any, Any]) -> Plan:
    after, columns = matrix.shape
    # Of four channels, sums are fused or not as the processor's vectors are long.
    is_known = (columns - 1, after) not in _SPECIAL and columns - 1 < _MOST_CHANNELS
    promise: Exactness = "exact" if is_known else "tolerance"
    return Plan(_sums(matrix, multiply_add(src, is_fused=environment().has_fma)), promise)


def _is_diagonal(matrix: np.ndarray[Any, Any]) -> bool:
    others = matrix[:, :-1] * (1 - np.eye(len(matrix)))
    return bool((np.abs(others) <= _NEAR).all())


def _in_fixed_point(matrix: np.ndarray[Any, Any]) -> Plan | None:
    scale = 1 << _BITS
    factors = np.rint(matrix * np.float32(scale)).astype(np.int64)
    factors[:, :2] = factors[:, :2].clip(-(1 << 15), (1 << 15) - 1)
    added = factors[:, -1] + scale // 2
    # In vectors, and in what they leave over, the half is added before and after rounding.
    ends = np.rint((matrix[:, -1] + np.float32(0.5)) * np.float32(scale))
    reach = 255 * np.abs(factors[:, :-1]).sum(1) + np.abs(added)
    if not np.array_equal(ends, added) or reach.max() >= _OVERFLOW:
        return None
    rows = [
        (each.tolist(), more) for each, more in zip(factors[:, :-1], added.tolist(), strict=True)
    ]

    def run(images: Tensor) -> Tensor:
        places, result = images.to(torch.int32).unbind(-1), []
        for row, more in rows:
            total = torch.full_like(places[0], more)
            for place, factor in zip(places, row, strict=True):
                total.add_(place, alpha=factor)
            result.append(total)
        return torch.stack(result, -1).bitwise_right_shift_(_BITS).clamp_(0, 255).to(torch.uint8)

    return Plan(run)


def _sums(matrix: np.ndarray[Any, Any], add: MultiplyAdd) -> Callable[[Tensor], Tensor]:
    """Return sums of float32, which start with what is added."""
    rows = [(each[:-1], each[-1]) for each in matrix.tolist()]

    def run(images: Tensor) -> Tensor:
        places, result = images.unbind(-1), []
        for row, added in rows:
            total = torch.full_like(places[0], added)
            for place, factor in zip(places, row, strict=True):
                total = add(place, factor, total)
            result.append(total)
        return torch.stack(result, -1)

    return run


def _in_perspective(images: Tensor, rows: list[list[float]], divisor: list[float]) -> Tensor:
    """Return places in perspective in float pairs, which have fewer bits than float64."""
    places = tuple(map(as_pair, images.unbind(-1)))
    like = images[..., 0]
    below = _pair_row(places, divisor, like)
    is_zero = ~(below.float().abs() > _NEAR)  # also of what is not a number
    below = FloatPair(torch.where(is_zero, 1.0, below.high), below.low)
    result = [(_pair_row(places, each, like) / below).float() for each in rows]
    return torch.stack(result, -1).masked_fill(is_zero[..., None], 0)


def _pair_row(places: tuple[FloatPair, ...], factors: list[float], like: Tensor) -> FloatPair:
    total = constant(factors[-1], like)
    for place, factor in zip(places, factors[:-1], strict=True):
        total = place * constant(factor, like) + total
    return total


def _row(places: tuple[Tensor, ...], factors: list[float]) -> Tensor:
    total = places[0] * factors[0]
    for place, factor in zip(places[1:], factors[1:-1], strict=True):
        total = total + place * factor
    return total + factors[-1]
