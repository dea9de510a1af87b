"""Resizes Pillow's images to Pillow's own pixels.

Pillow weighs pixels with whole numbers of 22 bits, along one axis and then along the other one, and
rounds to bytes in between. Sums of whole numbers are the same everywhere, so only the weights,
which are computed on the host, have to be Pillow's.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import torch

from devicecore.migrate.strategies.torch_strategy import to_array

if TYPE_CHECKING:
    from devicecore.migrate.strategies.torch_strategy import Call

_BITS: Final = 22
_NEAREST: Final = 0
# Colours that are no more than what their opacity allows are the ones to be weighed.
_WEIGHED_AS: Final = {"L": "L", "RGB": "RGB", "RGBA": "RGBa", "CMYK": "CMYK", "YCbCr": "YCbCr"}
_MOST_PIXELS: Final = 1 << 30
_NUMBERS: Final = (int, float)


def resize(call: Call, self: Any, size: Any, resample: Any, box: Any, reducing_gap: Any) -> Any:
    """Compute `PIL.Image.Image.resize` of images with bytes."""
    from PIL import Image

    mode: Any = getattr(self, "mode", None)
    call.need(mode in _WEIGHED_AS, f"pixels are {mode}")
    kind = Image.Resampling.BICUBIC if resample is None else resample
    is_known = isinstance(kind, int) and (kind in _FILTERS or kind == _NEAREST)
    call.need(is_known, f"the filter is {resample!r}")
    wanted, area = _geometry(call, self, size, box)
    if reducing_gap is not None:
        is_gap = isinstance(reducing_gap, _NUMBERS) and reducing_gap >= 1
        call.need(is_gap, f"the reducing gap is {reducing_gap!r}")
        is_reduced = kind != _NEAREST and _is_reduced(self, wanted, box, reducing_gap)
        call.need(not is_reduced, "it is shrunk in two steps")
    whole = (0.0, 0.0, *map(float, self.size))
    call.need(wanted != self.size or area != whole, "the size is the same")
    call.need((area[2] - area[0], area[3] - area[1]) != wanted, "it is only cut out")
    order = _order(call, int(kind))
    if order is None:
        call.refuse("this Pillow has other pixels")
    weighed = _WEIGHED_AS[mode] if kind != _NEAREST else mode
    pixels = np.asarray(self if weighed == mode else self.convert(weighed))
    call.need(pixels.shape[1::-1] == self.size, "its size is another once it is loaded")
    tensor = call.tensor(pixels.reshape(*pixels.shape[:2], -1))
    found = to_array(_resized(call, tensor, wanted, area, int(kind), order))
    result = Image.frombytes(weighed, wanted, found.tobytes())
    result = result if weighed == mode else result.convert(mode)
    result.info = {
        name: value.copy() if isinstance(value, list) else value
        for name, value in self.info.items()
    }
    return result


def _geometry(
    call: Call, image: Any, size: Any, box: Any
) -> tuple[tuple[int, int], tuple[float, ...]]:
    """Return the size that is wanted, and the part of the image that is wanted in that size."""
    call.need(isinstance(size, (tuple, list)) and len(size) == 2, f"the size is {size!r}")
    call.need(all(type(each) is int and each > 0 for each in size), f"the size is {size!r}")
    call.need(image.width * image.height * size[0] * size[1] > 0, "there are no pixels")
    call.need(max(size[0] * size[1], size[0] * image.height) < _MOST_PIXELS, "it is too large")
    area = (0.0, 0.0, *map(float, image.size))
    if box is not None:
        call.need(isinstance(box, (tuple, list)) and len(box) == 4, f"the box is {box!r}")
        call.need(all(isinstance(each, _NUMBERS) for each in box), f"the box is {box!r}")
        # Pillow keeps them in single precision.
        area = tuple(float(np.float32(each)) for each in box)
        call.need(0 <= area[0] < area[2] <= image.width, f"the box is {box!r}")
        call.need(0 <= area[1] < area[3] <= image.height, f"the box is {box!r}")
    return (size[0], size[1]), area


def _is_reduced(image: Any, size: tuple[int, int], box: Any, gap: float) -> bool:
    """Return whether Pillow first shrinks the image by whole numbers: along either axis."""
    # In double precision, unlike the box that it then weighs.
    area: tuple[float, ...] = (0, 0, *image.size) if box is None else box
    scales = (area[2] - area[0]) / size[0], (area[3] - area[1]) / size[1]
    return any(scale / gap >= 2 for scale in scales)


_Order = Callable[[int, int], bool]
"""Whether columns are weighed before rows, given by how much those and these become fewer."""

_ORDERS: Final[tuple[_Order, ...]] = (
    lambda fewer_rows, fewer_columns: fewer_rows > max(0, 2 * fewer_columns),  # since Pillow 13
    lambda _rows, _columns: False,
)


def _resized(
    call: Call,
    pixels: Any,
    size: tuple[int, int],
    area: tuple[float, ...],
    kind: int,
    columns_first: _Order,
) -> Any:
    """Return pixels of another size: rows, columns and channels."""
    passes = [(1, size[0], area[0], area[2]), (0, size[1], area[1], area[3])]
    if columns_first(pixels.shape[0] - size[1], pixels.shape[1] - size[0]):
        passes.reverse()
    for dim, length, first, last in passes:
        count = pixels.shape[dim]
        if kind == _NEAREST:
            places = _nearest(first, last, length)
            call.need(places[-1] < count, "the last pixel is outside")
            pixels = pixels.index_select(dim, call.tensor(places))
        elif length != count or first or last != count:
            table = _weights(count, first, last, length, kind)
            pixels = _weighed(pixels, dim, call.tensor(table.first), call.tensor(table.weights))
    return pixels


def _nearest(first: float, last: float, length: int) -> Any:
    step = _span(first, last) / length
    steps = np.full(length, step)
    steps[0] = first + step * 0.5
    return np.add.accumulate(steps).astype(np.int64)  # with the errors of Pillow's own sum


def _span(first: float, last: float) -> float:
    return float(np.float32(last) - np.float32(first))  # of single precision, as Pillow has it


def _weighed(pixels: Any, dim: int, first: Any, weights: Any) -> Any:
    """Return the rounded sums of weighed pixels along an axis.

    Args:
        pixels: Bytes: rows, columns and channels.
        dim: The axis.
        first: For each pixel of the result, where its first weight belongs.
        weights: For each pixel of the result, its weights; zeros after those that it has.
    """
    shape = [1, 1, 1]
    shape[dim] = -1
    last = pixels.shape[dim] - 1
    total: Any = 1 << (_BITS - 1)
    for place in range(weights.shape[1]):
        part = pixels.index_select(dim, (first + place).clamp(max=last))
        total = total + part.int() * weights[:, place].reshape(shape)
    return total.bitwise_right_shift(_BITS).clamp(0, 255).to(torch.uint8)


class _Table(NamedTuple):
    first: Any
    weights: Any


@lru_cache(maxsize=64)
def _weights(count: int, first: float, last: float, length: int, kind: int) -> _Table:
    """Return Pillow's weights, as whole numbers, for an axis of *count* pixels."""
    function, reach = _FILTERS[kind]
    scale = _span(first, last) / length
    stretch = max(scale, 1.0)
    support = reach * stretch
    centers = first + (np.arange(length) + 0.5) * scale
    begins = np.maximum((centers - support + 0.5).astype(np.int64), 0)
    ends = np.minimum((centers + support + 0.5).astype(np.int64), count)
    places = np.arange(math.ceil(support) * 2 + 1)
    offsets = (places + begins[:, None] - centers[:, None] + 0.5) * (1.0 / stretch)
    values = np.where(places < (ends - begins)[:, None], function(offsets), 0.0)
    sums = np.add.accumulate(values, axis=1)[:, -1:]  # one after the other, as Pillow does
    values = np.divide(values, sums, out=values, where=sums != 0)
    scaled = values * (1 << _BITS)
    whole = np.trunc(np.where(values < 0, scaled - 0.5, scaled + 0.5)).astype(np.int32)
    used = max(1, int((ends - begins).max()))
    return _Table(begins, np.ascontiguousarray(whole[:, :used]))


def _box(x: Any) -> Any:
    return ((x > -0.5) & (x <= 0.5)).astype(np.float64)


def _bilinear(x: Any) -> Any:
    return np.maximum(1.0 - np.abs(x), 0.0)


def _bicubic(x: Any) -> Any:
    a = -0.5
    x = np.abs(x)
    near = ((a + 2.0) * x - (a + 3.0)) * x * x + 1
    far = (((x - 5) * x + 8) * x - 4) * a
    return np.where(x < 1.0, near, np.where(x < 2.0, far, 0.0))


# Of these the orders can be told apart with every filter, also with one that copies pixels.
_TRIED: Final = ((17, 29), (120, 7), (7, 110), (99, 16), (99, 86), (92, 61))
_HAMMING: Final = float(np.float32(0.54)), float(np.float32(0.46))


# Sines of the C library, since those of numpy may have another last bit.
def _hamming(x: float) -> float:
    x = abs(x)
    if x == 0.0:
        return 1.0
    if x >= 1.0:
        return 0.0
    x = x * math.pi
    return math.sin(x) / x * (_HAMMING[0] + _HAMMING[1] * math.cos(x))


def _sinc(x: float) -> float:
    if x == 0.0:
        return 1.0
    x = x * math.pi
    return math.sin(x) / x


def _lanczos(x: float) -> float:
    return _sinc(x) * _sinc(x / 3) if -3.0 <= x < 3.0 else 0.0


def _one_by_one(function: Callable[[float], float]) -> Callable[[Any], Any]:
    return np.vectorize(function, otypes=[np.float64])


# By Pillow's numbers: the filter, and how far it reaches.
_FILTERS: Final[dict[int, tuple[Callable[[Any], Any], float]]] = {
    1: (_one_by_one(_lanczos), 3.0),
    2: (_bilinear, 1.0),
    3: (_bicubic, 2.0),
    4: (_box, 0.5),
    5: (_one_by_one(_hamming), 1.0),
}


def _order(call: Call, kind: int) -> _Order | None:
    """Return the order of the installed Pillow, or None if its pixels are others than these.

    Its releases differ, and so do others that are installed under its name.
    """
    key = call.device.name, kind
    if key not in _known():
        _known()[key] = next(
            (each for each in _ORDERS if _has_pillows_pixels(call, kind, each)), None
        )
    return _known()[key]


@cache
def _known() -> dict[tuple[str, int], _Order | None]:
    return {}


def _has_pillows_pixels(call: Call, kind: int, order: _Order) -> bool:
    from PIL import Image

    values = np.random.default_rng(0).integers(0, 256, (90, 100, 3)).astype(np.uint8)
    image, area = Image.fromarray(values), (0.0, 0.0, 100.0, 90.0)
    for size in _TRIED:
        found = to_array(_resized(call, call.tensor(values), size, area, kind, order))
        if not np.array_equal(found, np.asarray(call.original(image, size, kind))):
            return False
    return True
