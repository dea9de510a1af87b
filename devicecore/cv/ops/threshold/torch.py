"""`cv2.threshold` on torch tensors."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import cv2
import numpy as np
import torch

from devicecore.cv.operation import operation
from devicecore.cv.ops.histogram.counts import counts
from devicecore.cv.ops.threshold.otsu_triangle import otsu, otsu_without_float64, triangle
from devicecore.cv.plan import Plan
from devicecore.cv.result_rules import like, number
from devicecore.cv.torch_support.dtypes import saturate

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from devicecore.cv.image import Image
    from devicecore.cv.result_rules import ArrayInfo

    Tensor = torch.Tensor
    Level = float | Tensor
    Combine = Callable[[Tensor, Level, float], Tensor]

_INTEGERS = frozenset({"uint8", "uint16", "int16"})
_FLOATS = frozenset({"float32", "float64"})
_AUTOMATIC = cv2.THRESH_OTSU | cv2.THRESH_TRIANGLE
# How many bits the values have that a threshold is found for.
_BITS = {
    ("uint8", cv2.THRESH_OTSU): 8,
    ("uint16", cv2.THRESH_OTSU): 16,
    ("uint8", cv2.THRESH_TRIANGLE): 8,
}


def examples() -> Iterator[tuple[tuple[Any, ...], dict[str, Any]]]:
    """Yield small calls of every kind."""
    chance = np.random.default_rng(4)
    for dtype in ("uint8", "uint16", "int16", "float32"):
        image = chance.integers(0, 256, (7, 19, 3)).astype(dtype)
        for kind in _KINDS:
            for value, most in ((100.5, 255), (-0.5, 70.5), (300, -3)):
                yield (image, value, most, kind), {}
    plane = chance.integers(0, 256, (7, 19)) * chance.integers(0, 256, (7, 19)) // 256
    for kind in _KINDS:
        yield (plane.astype(np.uint8), 0, 200.5, kind | cv2.THRESH_TRIANGLE), {}
        yield (plane.astype(np.uint8), 0, 200.5, kind | cv2.THRESH_OTSU), {}
    yield (plane.astype(np.uint16), 0, 200.5, cv2.THRESH_OTSU), {}


def _level_and_image(given: Mapping[str, Any]) -> tuple[ArrayInfo, ...]:
    return number(given["src"]), like(given["src"])


@operation("src", examples=examples, result=_level_and_image)
def threshold(
    src: Image,
    thresh: float,
    maxval: float,
    type: int,
    dst: Any = None,  # noqa: ARG001 - whoever calls kernels fills it
) -> Plan | None:
    """Plan one call of ``cv2.threshold``."""
    if src.pixels == 0 or not (math.isfinite(thresh) and math.isfinite(maxval)):
        return None
    combine = _KINDS.get(type & ~_AUTOMATIC)
    if combine is None or type & _AUTOMATIC:
        return None if combine is None else _found(src, type & _AUTOMATIC, maxval, combine)
    target: torch.dtype = getattr(torch, src.dtype)
    if src.dtype in _INTEGERS:
        limits = np.iinfo(src.dtype)
        used: float = math.floor(thresh)
        most: float = min(max(round(maxval), limits.min), limits.max)
        if max(abs(used), abs(maxval)) > limits.max << 8:  # near to what overflows
            return None
        work = torch.int32
    elif src.dtype in _FLOATS:
        work, cast = target, getattr(np, src.dtype)
        used, most = float(cast(thresh)), float(cast(maxval))
    else:
        return None
    kind = _level_type(src)
    answer = float(used if src.dtype in _INTEGERS else thresh)

    def run(images: Tensor) -> tuple[Tensor, Tensor]:
        result = saturate(combine(images.to(work), used, most), target)
        return torch.full((len(images),), answer, dtype=kind, device=images.device), result

    # The level that is returned may have more bits than float32.
    is_whole = src.has_float64 or answer == float(np.float32(answer))
    return Plan(run, "exact" if is_whole else "tolerance")


def _level_type(src: Image) -> torch.dtype:
    return torch.float64 if src.has_float64 else torch.float32


def _found(src: Image, finder: int, maxval: float, combine: Combine) -> Plan | None:
    """Plan a call whose threshold is found in the image's histogram."""
    bits = _BITS.get((src.dtype, finder))
    if bits is None or src.channels != 1 or abs(maxval) > 1 << 30:
        return None
    target: torch.dtype = getattr(torch, src.dtype)
    kind = _level_type(src)
    find = triangle
    if finder == cv2.THRESH_OTSU:
        find = otsu if src.has_float64 else otsu_without_float64
    most = min(max(round(maxval), 0), (1 << bits) - 1)

    def run(images: Tensor) -> tuple[Tensor, Tensor]:
        level = find(counts(images, 1 << bits))
        used = level.to(torch.int32).view(-1, 1, 1, 1)
        return level.to(kind), saturate(combine(images.to(torch.int32), used, most), target)

    # Where two thresholds of Otsu's are as good, which one it is depends on how it is rounded.
    return Plan(run, "close" if finder == cv2.THRESH_OTSU else "exact")


def _two_values(above: Callable[[float], tuple[float, float]]) -> Combine:
    def combine(x: Tensor, level: Level, most: float) -> Tensor:
        high, low = above(most)
        return torch.where(x > level, torch.full_like(x, high), torch.full_like(x, low))

    return combine


_KINDS: dict[int, Combine] = {
    cv2.THRESH_BINARY: _two_values(lambda most: (most, 0)),
    cv2.THRESH_BINARY_INV: _two_values(lambda most: (0, most)),
    cv2.THRESH_TRUNC: lambda x, level, _: x.clamp(max=level),
    cv2.THRESH_TOZERO: lambda x, level, _: torch.where(x > level, x, torch.zeros_like(x)),
    cv2.THRESH_TOZERO_INV: lambda x, level, _: torch.where(x > level, torch.zeros_like(x), x),
}
