"""`cv2.CLAHE.apply` on torch tensors: histograms of tiles, equalized up to a limit."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import cv2
import numpy as np
import torch
from attrs import frozen

from devicecore.cv.arguments import size, whole
from devicecore.cv.operation import operation
from devicecore.cv.ops.histogram.counts import counts
from devicecore.cv.plan import Plan
from devicecore.cv.table import Table
from devicecore.cv.torch_support.padding import pad_images

if TYPE_CHECKING:
    from collections.abc import Iterator

    from devicecore.cv.image import Image

    Tensor = torch.Tensor

_BITS = {"uint8": 8, "uint16": 16}
# Beyond it, OpenCV's limit overflows.
_LARGEST_LIMIT = (1 << 31) - 1


def examples() -> Iterator[tuple[tuple[Any, ...], dict[str, Any]]]:
    """Yield small calls of every kind."""
    chance = np.random.default_rng(31)
    for shape in ((24, 32), (23, 37)):
        image = chance.integers(0, 200, shape, np.uint8)
        for limit in (0, 2, 40.0):
            yield (image, limit, (8, 4)), {}
        yield (image, 2.0, (3, 5), 2), {}
    yield (chance.integers(0, 60000, (9, 14), np.uint16), 3.0, (2, 2)), {}


@frozen
class _Tiles:
    """The tiles that histograms are made of.

    Attributes:
        across: How many lie beside each other.
        down: How many lie below each other.
        width: Pixels of a tile.
        height: Pixels of a tile.
        missing_columns: How many the image is wider with them.
        missing_rows: How many it is higher.
    """

    across: int
    down: int
    width: int
    height: int
    missing_columns: int
    missing_rows: int

    @property
    def pixels(self) -> int:
        """How many one has."""
        return self.width * self.height


@operation("src", examples=examples)
def CLAHE_apply(
    src: Image,
    clipLimit: float,
    tileGridSize: Any,
    bitShift: int = 0,
    dst: Any = None,  # noqa: ARG001 - whoever calls kernels fills it
) -> Plan | None:
    """Plan one call of ``cv2.CLAHE.apply``, of an object that has these settings."""
    bits, shift = _BITS.get(src.dtype), whole(bitShift)
    if bits is None or src.channels != 1 or not 0 <= shift < bits:
        return None
    tiles = _tiles(src, *size(tileGridSize))
    bins = 1 << bits - shift
    limit = clipLimit * tiles.pixels / bins
    if not math.isfinite(limit) or limit > _LARGEST_LIMIT:
        return None
    least = max(int(limit), 1) if clipLimit > 0 else None
    share = float(np.float32(bins - 1) / np.float32(tiles.pixels))
    columns = _neighbours(src.width, tiles.width, tiles.across)
    rows = _neighbours(src.height, tiles.height, tiles.down)
    most = (1 << bits) - 1

    def run(images: Tensor) -> Tensor:
        values = images[..., 0].to(torch.int32).bitwise_right_shift(shift)
        result = _counted(values, tiles, bins)
        if least is not None:
            result = _clipped(result, least)
        tables = (result.cumsum(1).float() * share).round_().clamp_(max=most)
        result = _between(values, tables.view(len(images), -1), tiles, bins, (columns, rows))
        result = result.round_().clamp_(max=most).to(torch.int32) * (1 << shift)
        return (result & most).to(images.dtype)[..., None]

    return Plan(run)


def _tiles(src: Image, across: int, down: int) -> _Tiles:
    columns, rows = src.width % across, src.height % down
    more_columns = more_rows = 0
    if columns or rows:  # then both directions get more, even one that would not need to
        more_columns, more_rows = across - columns, down - rows
    width, height = (src.width + more_columns) // across, (src.height + more_rows) // down
    return _Tiles(across, down, width, height, more_columns, more_rows)


def _neighbours(length: int, tile: int, count: int) -> Table:
    """Return for each pixel of an axis the tiles on both sides, and the second one's weight."""
    place = np.arange(length, dtype=np.float32) * (np.float32(1) / np.float32(tile))
    place -= np.float32(0.5)
    first = np.floor(place)
    weight = place - first
    return Table(np.stack([first.clip(0), (first + 1).clip(max=count - 1), weight]))


def _counted(values: Tensor, tiles: _Tiles, bins: int) -> Tensor:
    """Return the histogram of each tile of each image, of shape (images * tiles, bins)."""
    x = values[..., None]
    if tiles.missing_columns:
        x = pad_images(x, 0, tiles.missing_rows, 0, tiles.missing_columns, cv2.BORDER_REFLECT_101)
    parts = x.view(len(x), tiles.down, tiles.height, tiles.across, tiles.width)
    return counts(parts.permute(0, 1, 3, 2, 4).reshape(-1, tiles.pixels), bins)


def _clipped(result: Tensor, limit: int) -> Tensor:
    """Return histograms with what is above a limit spread over all their bins."""
    bins = result.shape[1]
    above = (result - limit).clamp_(min=0).sum(1, keepdim=True)
    rest = above % bins
    step = (bins // rest.clamp(min=1)).clamp_(min=1)
    place = torch.arange(bins, device=result.device)
    has_more = (place % step == 0) & (place // step < rest)
    return result.clamp(max=limit) + above // bins + has_more


def _between(
    values: Tensor, tables: Tensor, tiles: _Tiles, bins: int, axes: tuple[Table, Table]
) -> Tensor:
    """Return what the tables of the four tiles around each pixel make of it."""
    columns, rows = (each.on(values) for each in axes)
    weight, fall = columns[2], rows[2][:, None]
    result = []
    for row in rows[:2].long():
        sides = []
        for column in columns[:2].long():
            place = (row[:, None] * tiles.across + column) * bins + values
            sides.append(tables.gather(1, place.flatten(1)).view(values.shape))
        result.append(sides[0] * (1 - weight) + sides[1] * weight)
    return result[0] * (1 - fall) + result[1] * fall
