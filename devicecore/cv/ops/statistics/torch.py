"""`cv2.sumElems`, `mean`, `meanStdDev` and `countNonZero` on torch tensors."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from devicecore.cv.operation import operation
from devicecore.cv.plan import Plan
from devicecore.cv.result_rules import number
from devicecore.cv.torch_support.masks import is_mask
from devicecore.cv.torch_support.operands import SMALL_INTEGERS
from devicecore.cv.torch_support.pair_sums import channel_means, mean_and_deviation
from devicecore.cv.torch_support.sqrt import rounded_sqrt

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from devicecore.cv.image import Image, Place
    from devicecore.cv.result_rules import ArrayInfo
    from devicecore.kernels import Exactness

    Tensor = torch.Tensor

# OpenCV returns four numbers, whatever channels there are.
_NUMBERS = 4
# Below this, sums of whole numbers in float64, such as OpenCV's, are not rounded.
_EXACT = 1 << 53
_FLOATS = frozenset({"float32", "float64"})
_COUNTED = SMALL_INTEGERS | {"int32", "float32", "float64"}


def examples() -> Iterator[tuple[tuple[Any, ...], dict[str, Any]]]:
    """Yield small calls of every kind."""
    chance = np.random.default_rng(14)
    for dtype in (np.uint8, np.int8, np.uint16, np.int16):
        limits = np.iinfo(dtype)
        for channels in (1, 3):
            shape = (13, 19, channels)
            yield (chance.integers(limits.min, limits.max, shape, dtype, endpoint=True),), {}


def masked_examples() -> Iterator[tuple[tuple[Any, ...], dict[str, Any]]]:
    """Yield these, and the same ones with masks."""
    for dtype in sorted(_FLOATS):
        yield (np.random.default_rng(15).random((13, 19, 3)).astype(dtype),), {}
    for (image,), _ in examples():
        yield (image,), {}
        yield (image,), {"mask": (image[..., 0] & 1).astype(np.uint8)}
        yield (image,), {"mask": np.zeros((13, 19), np.uint8)}


def planes() -> Iterator[tuple[tuple[Any, ...], dict[str, Any]]]:
    """Yield a small plane of every type that is counted."""
    chance = np.random.default_rng(15)
    for dtype in sorted(_COUNTED):
        yield (chance.integers(0, 2, (13, 19)).astype(dtype),), {}


def _four_sums(given: Mapping[str, Any]) -> tuple[ArrayInfo, ...]:
    src: Image = given["src"]
    return (((_NUMBERS,), np.dtype("float64" if src.has_float64 else "int64")),)


def _four_means(given: Mapping[str, Any]) -> tuple[ArrayInfo, ...]:
    return (((_NUMBERS,), number(given["src"])[1]),)


def _means_and_deviations(given: Mapping[str, Any]) -> tuple[ArrayInfo, ...]:
    return (((given["src"].channels, 1), number(given["src"])[1]),) * 2


def _count(given: Mapping[str, Any]) -> tuple[ArrayInfo, ...]:
    return (number(given["src"], "int64"),)


@operation("src", examples=examples, result=_four_sums)
def sumElems(src: Image) -> Plan | None:
    """Plan one call of ``cv2.sumElems``."""
    if src.dtype not in SMALL_INTEGERS or src.channels > _NUMBERS:
        return None
    if not src.has_float64:  # the sums themselves are as good
        return Plan(
            lambda images: _four(_whole(images).sum((1, 2), dtype=torch.int64)), finish=_tuple
        )
    return Plan(lambda images: _four(_sums(_whole(images))), finish=_tuple)


@operation("src", "mask", examples=masked_examples, result=_four_means)
def mean(src: Image, mask: Any = None) -> Plan | None:
    """Plan one call of ``cv2.mean``."""
    if not is_mask(mask, src, "int8"):
        return None
    if src.dtype not in SMALL_INTEGERS | _FLOATS or src.channels > _NUMBERS:
        return None
    if not src.has_float64:
        return Plan(lambda *images: _four(channel_means(*images).float()), "tolerance", _tuple)
    share = 1.0 / src.pixels

    def run(images: Tensor, wanted: Tensor | None = None) -> Tensor:
        if wanted is None:
            return _four(_sums(_whole(images)) * share)
        values = _whole(images) * (wanted != 0)
        return _four(_sums(values) * _share(wanted))

    return Plan(run, _promise(src), _tuple)


@operation("src", "mask", examples=masked_examples, result=_means_and_deviations)
def meanStdDev(
    src: Image,
    mean: Any = None,
    stddev: Any = None,
    mask: Any = None,
) -> Plan | None:
    """Plan one call of ``cv2.meanStdDev``."""
    is_plain = is_mask(mask, src, "int8") and _is_filled(mean, src) and _is_filled(stddev, src)
    work = _squared_type(src) if is_plain else None
    if work is None:
        return None
    if not src.has_float64:
        return Plan(mean_and_deviation, "tolerance", _in_float64)
    every = 1.0 / src.pixels

    def run(images: Tensor, wanted: Tensor | None = None) -> tuple[Tensor, Tensor]:
        values, share = images.to(work), every if wanted is None else _share(wanted)
        if wanted is not None:
            values = values * (wanted != 0)
        means = _sums(values) * share
        spread = _sums(values * values) * share - means * means
        return means[..., None], rounded_sqrt(spread.clamp_(min=0))[..., None]

    return Plan(run, _promise(src))


def _is_filled(place: Place | None, src: Image) -> bool:
    """Return whether a column of numbers is filled as any result is, or is none for so many.

    OpenCV also fills a row of as many, and refuses a place whose numbers lie apart.
    """
    if place is None or math.prod(place.shape) != src.channels:
        return True
    column = (src.channels, 1)
    return place.is_continuous and not place.is_operand and place.shape in {column, (*column, 1)}


def _squared_type(src: Image) -> torch.dtype | None:
    """Return a type that has room for squares, or None where OpenCV's own sums are rounded."""
    if src.dtype in _FLOATS:
        return torch.float64
    if src.dtype not in SMALL_INTEGERS:
        return None
    limits = np.iinfo(src.dtype)
    if src.pixels * int(max(-limits.min, limits.max)) ** 2 >= _EXACT:
        return None
    return torch.int32 if limits.bits == 8 else torch.int64


def _promise(src: Image) -> Exactness:
    return "tolerance" if src.dtype in _FLOATS else "exact"


@operation("src", examples=planes, result=_count)
def countNonZero(src: Image) -> Plan | None:
    """Plan one call of ``cv2.countNonZero``."""
    if src.dtype not in _COUNTED or src.channels != 1:
        return None
    return Plan(lambda images: (_whole(images) != 0).sum((1, 2, 3)), finish=int)


def _whole(images: Tensor) -> Tensor:
    return images.to(torch.int32) if images.dtype is torch.uint16 else images


def _sums(values: Tensor) -> Tensor:
    """Return the sum of each channel of each image."""
    work = torch.float64 if values.is_floating_point() else torch.int64
    return values.sum((1, 2), dtype=work).to(torch.float64)


def _share(wanted: Tensor) -> Tensor:
    """Return one divided by the number of pixels that masks have, or 0."""
    count = (wanted != 0).sum((1, 2), dtype=torch.int64).double()
    return torch.where(count > 0, count.reciprocal(), 0.0)


def _four(result: Tensor) -> Tensor:
    return torch.nn.functional.pad(result, (0, _NUMBERS - result.shape[1]))


def _tuple(result: Any) -> tuple[float, ...]:
    return tuple(map(float, result.tolist()))


def _in_float64(result: Any) -> Any:
    return tuple(each.astype(np.float64) for each in result)
