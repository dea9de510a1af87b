"""`cv2.calcHist` and `cv2.equalizeHist` on torch tensors."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from devicecore.cv.arguments import whole
from devicecore.cv.environment import environment
from devicecore.cv.operation import operation
from devicecore.cv.ops.histogram.counts import counts
from devicecore.cv.plan import Plan
from devicecore.cv.table import Table
from devicecore.cv.torch_support.masks import is_mask
from devicecore.cv.torch_support.pixels import lookup_rows

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from devicecore.cv.image import Image
    from devicecore.cv.result_rules import ArrayInfo

    Tensor = torch.Tensor

_BINS = 256
_MOST_AXES, _MOST_BINS = 3, 1 << 22


def _counts_of_images() -> Iterator[tuple[tuple[Any, ...], dict[str, Any]]]:
    image = np.random.default_rng(8).integers(0, 60, (20, 30, 3), np.uint8)
    yield ([image], [1], None, [_BINS], [0, _BINS]), {}
    plane = np.ascontiguousarray(image[..., 0])
    yield ([plane], [0], None, [_BINS], [0, _BINS]), {}
    yield ([image], [2], plane & 1, [_BINS], [0, _BINS]), {}
    yield ([image, plane], [0, 3], None, [16, 32], [0, 180, 10, 50.5]), {}


def _planes() -> Iterator[tuple[tuple[Any, ...], dict[str, Any]]]:
    yield (np.random.default_rng(9).integers(30, 190, (20, 31), np.uint8),), {}
    yield (np.full((3, 4), 7, np.uint8),), {}


def _bins(given: Mapping[str, Any]) -> tuple[ArrayInfo, ...]:
    sizes = tuple(given["histSize"])
    is_column = len(sizes) == 1 and environment().version < (5, 0)
    return (((*sizes, 1) if is_column else sizes, np.dtype(np.float32)),)


@operation("images", "mask", examples=_counts_of_images, result=_bins)
def calcHist(
    images: Sequence[Image],
    channels: Sequence[int],
    mask: Any,
    histSize: Sequence[int],
    ranges: Sequence[float],
    hist: Any = None,
    accumulate: bool = False,
) -> Plan | None:
    """Plan one call of ``cv2.calcHist``: of images of bytes, with bins of one width."""
    if not isinstance(images, (list, tuple)) or accumulate is not False:
        return None
    if hist is not None and len(hist.shape) < min(2, len(histSize)):
        return None  # OpenCV 5 takes no place of one axis for several, or returns another array
    first, sizes, limits = images[0], list(map(whole, histSize)), list(map(np.float32, ranges))
    if not is_mask(mask, first) or {(each.dtype, each.size) for each in images} != {
        ("uint8", first.size)
    }:
        return None
    places = [whole(each) for each in channels]
    count = sum(each.channels for each in images)
    if not places or not all(0 <= place < count for place in places):
        return None
    if not len(places) == len(sizes) == len(limits) / 2 or not _are_bins(sizes):
        return None
    is_column = len(sizes) == 1 and environment().version < (5, 0)
    shape = (*sizes, 1) if is_column else tuple(sizes)
    bins, has_mask = math.prod(sizes), mask is not None
    index = _index(places, _tables(sizes, limits), bins)

    def run(*given: Tensor) -> Tensor:
        weights = (given[-1][..., 0] != 0).long() if has_mask else None
        result = counts(index(torch.cat(given[: len(given) - has_mask], 3)), bins + 1, weights)
        return result[:, :bins].reshape(-1, *shape).float()

    return Plan(run)


def _are_bins(sizes: Sequence[int]) -> bool:
    """Return whether there are so many bins, and results of such axes, as are computed here."""
    few = len(sizes) <= _MOST_AXES and all(each > 0 for each in sizes)
    # A last axis of one bin would be taken for a channel.
    return few and math.prod(sizes) <= _MOST_BINS and (len(sizes) < _MOST_AXES or sizes[-1] > 1)


def _index(places: Sequence[int], tables: Sequence[Table], bins: int) -> Callable[[Tensor], Tensor]:
    """Return what finds the bin of each pixel; what is in none is in one behind them."""
    bytes_ = np.arange(_BINS)
    if len(places) == 1 and np.array_equal(tables[0].host, bytes_):
        return lambda pictures: pictures[..., places[0]]

    def run(pictures: Tensor) -> Tensor:
        result = torch.zeros((), dtype=torch.int64, device=pictures.device)
        for place, table in zip(places, tables, strict=True):
            result = result + lookup_rows(table.on(pictures), pictures[..., place].int())
        return result.clamp_(max=bins)

    return run


def _tables(sizes: Sequence[int], limits: Sequence[Any]) -> list[Table]:
    """Return for each axis where the bin of each byte starts; outside, it is behind all bins."""
    result, values = [], np.arange(256)
    for axis, size in enumerate(sizes):
        low, high = map(float, limits[2 * axis : 2 * axis + 2])
        if not low < high:
            raise ValueError(limits)
        share = size / (high - low)
        index = np.floor(values * share - share * low).astype(np.int64).clip(0, size - 1)
        inside = (values >= low) & (values < high)
        step = math.prod(sizes[axis + 1 :])
        result.append(Table(np.where(inside, index * step, math.prod(sizes))))
    return result


@operation("src", examples=_planes)
def equalizeHist(
    src: Image,
    dst: Any = None,  # noqa: ARG001 - whoever calls kernels fills it
) -> Plan | None:
    """Plan one call of ``cv2.equalizeHist``."""
    if src.dtype != "uint8" or src.channels != 1 or not src.pixels:
        return None
    pixels = src.pixels

    def run(images: Tensor) -> Tensor:
        found = counts(images, _BINS)
        darkest = (found > 0).int().argmax(1, keepdim=True)
        others = pixels - found.gather(1, darkest)
        # How many pixels are as dark or darker, but for those of the darkest value.
        darker = found.cumsum(1) - (pixels - others)
        # A number by a tensor would be its reciprocal, rounded, times the number.
        share = torch.full_like(others, 255, dtype=torch.float32).div_(others)
        table = (darker.float() * share).round_().clamp_(0, 255).to(torch.uint8)
        # An image of one value keeps it.
        table = torch.where(others == 0, darkest.to(torch.uint8), table)
        flat = images.reshape(len(images), -1)
        return table.gather(1, flat.long()).view(images.shape)

    return Plan(run)
