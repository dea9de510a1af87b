"""`cv2.reduce` on torch tensors: reduces uint8 images to one row or column."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import cv2
import numpy as np
import torch

from devicecore.cv.operation import operation
from devicecore.cv.plan import Plan
from devicecore.cv.result_rules import DEPTHS, like
from devicecore.cv.torch_support.dtypes import saturate
from devicecore.cv.torch_support.integer_means import integer_means

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from devicecore.cv.image import Image
    from devicecore.cv.result_rules import ArrayInfo

    Tensor = torch.Tensor

# By OpenCV's numbers of types: what sums and means may be.
_SUMS = {cv2.CV_32S: torch.int32, cv2.CV_32F: torch.float32, cv2.CV_64F: torch.float64}
_MEANS = {-1: torch.uint8, cv2.CV_8U: torch.uint8, **_SUMS}
_SAME = frozenset({-1, cv2.CV_8U})
# Sums of so many bytes are whole numbers in float32 as well, and those of squares fit int32.
_MOST_SUMMED, _MOST_SQUARED = (1 << 24) // 255, (1 << 31) // 255**2


def examples() -> Iterator[tuple[tuple[Any, ...], dict[str, Any]]]:
    """Yield small calls of every kind."""
    image = np.random.default_rng(18).integers(0, 256, (13, 19, 3), np.uint8)
    for axis in (0, 1):
        for kind in (cv2.REDUCE_MAX, cv2.REDUCE_MIN, cv2.REDUCE_AVG):
            yield (image, axis, kind), {}
        for depth in _SUMS:
            for kind in (cv2.REDUCE_SUM, cv2.REDUCE_AVG, cv2.REDUCE_SUM2):
                yield (image, axis, kind), {"dtype": depth}


def _row_or_column(given: Mapping[str, Any]) -> tuple[ArrayInfo, ...]:
    src, depth = given["src"], given["dtype"]
    size = (1, src.height) if given["dim"] else (src.width, 1)
    return (like(src, size=size, dtype=None if depth < 0 else DEPTHS[depth]),)


@operation("src", examples=examples, result=_row_or_column)
def reduce(
    src: Image,
    dim: int,
    rtype: int,
    dst: Any = None,  # noqa: ARG001 - whoever calls kernels fills it
    dtype: int = -1,
) -> Plan | None:
    """Plan one call of ``cv2.reduce``."""
    if src.dtype != "uint8" or any(type(each) is not int for each in (dim, rtype, dtype)):
        return None
    if dim not in {0, 1}:
        return None
    count = src.width if dim else src.height
    compute = None if src.lacks(_MEANS.get(dtype)) else _computing(src, rtype, dtype, count)
    return None if compute is None else Plan(lambda images: compute(images, 1 + dim))


def _computing(
    src: Image, kind: int, depth: int, count: int
) -> Callable[[Tensor, int], Tensor] | None:
    """Return what is done along an axis of *count* bytes, or None where OpenCV has to judge."""
    if kind in {cv2.REDUCE_MAX, cv2.REDUCE_MIN}:
        extreme = torch.amax if kind == cv2.REDUCE_MAX else torch.amin
        return (lambda x, axis: extreme(x, axis, keepdim=True)) if depth in _SAME else None
    if kind == cv2.REDUCE_AVG and depth in _MEANS and count <= _MOST_SUMMED:
        return _mean(_MEANS[depth], count, has_float64=src.has_float64)
    if kind == cv2.REDUCE_SUM and depth in _SUMS and count <= _MOST_SUMMED:
        return lambda x, axis: _sum(x, axis).to(_SUMS[depth])
    # In float32, sums of squares are rounded.
    if kind == cv2.REDUCE_SUM2 and depth in {cv2.CV_32S, cv2.CV_64F} and count <= _MOST_SQUARED:
        return lambda x, axis: _sum(x.to(torch.int32).square(), axis).to(_SUMS[depth])
    return None


def _sum(x: Tensor, axis: int) -> Tensor:
    return x.sum(axis, keepdim=True, dtype=torch.int64)


def _mean(
    target: torch.dtype, count: int, *, has_float64: bool
) -> Callable[[Tensor, int], Tensor] | None:
    """Return means; those of int32 are computed in float64, as int32 has more bits than float32."""
    share = 1.0 / count
    if target is torch.int32 and not has_float64:
        means = integer_means(count, 0, 255)
        return None if means is None else lambda x, axis: means(_sum(x, axis))
    work = torch.float64 if target in {torch.int32, torch.float64} else torch.float32
    used = share if work is torch.float64 else float(np.float32(share))
    return lambda x, axis: saturate(_sum(x, axis).to(work) * used, target)
