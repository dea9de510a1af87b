"""Where `cv2.resize` reads each output pixel, and with which weights.

All tables are for one axis.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from attrs import frozen

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Index = NDArray[np.int64]
    Weights = NDArray[Any]

_LINEAR_ONE = np.float32(2048)  # weights have 11 bits
_A = np.float32(-0.75)  # of the cubic kernel
_S45 = math.sqrt(0.5)
_PARTIAL_CELL = 1e-3  # what overhangs less than this is left out
_ON_THE_SPOT = 1e-6  # of a Lanczos weight, whose formula divides by the distance


@frozen
class Axis:
    """One axis of an image that is resized.

    Attributes:
        source: Pixels that there are.
        target: Pixels that are asked for.
        factor: How much larger it becomes; by a factor that was given, *target* is rounded.
    """

    source: int
    target: int
    factor: float

    @property
    def is_whole(self) -> bool:
        """Whether the factor is that of the sizes, so that no pixel at the end is left over."""
        return self.factor == self.target / self.source

    @property
    def step(self) -> float:
        """How many source pixels an output pixel spans; rounded twice, as OpenCV does."""
        return 1.0 / self.factor


def nearest(axis: Axis) -> Index:
    """Return the pixels of INTER_NEAREST."""
    position = np.arange(axis.target) * axis.step
    result: Index = np.minimum(np.floor(position), axis.source - 1).astype(np.int64)
    return result


def nearest_exact(axis: Axis) -> Index:
    """Return the pixels of INTER_NEAREST_EXACT since OpenCV 5: a position that is added up."""
    step = axis.source / axis.target
    steps = np.full(axis.target, step)
    steps[0] = step * 0.5
    positions = np.add.accumulate(steps)  # one after the other, so each sum is rounded
    return np.minimum(np.floor(positions), axis.source - 1).astype(np.int64)


def center_positions(axis: Axis) -> tuple[Index, Weights]:
    """Return the pixel left of each output pixel's centre, and the rest in float32."""
    position = ((np.arange(axis.target) + 0.5) * axis.step - 0.5).astype(np.float32)
    left = np.floor(position)
    return left.astype(np.int64), position - left


def growing_cells(axis: Axis) -> tuple[Index, Weights]:
    """Return what INTER_AREA reads where an axis grows: a kind of linear interpolation."""
    output = np.arange(axis.target)
    left = np.floor(output * axis.step).astype(np.int64)
    rest = ((output + 1) - (left + 1) * axis.factor).astype(np.float32)
    return left, np.where(rest <= 0, np.float32(0), rest - np.floor(rest))


def clamp_positions(left: Index, rest: Weights, axis: Axis) -> tuple[Index, Weights]:
    """Return positions inside of the image; outside, the pixel at the border has all weight."""
    outside = (left < 0) | (left >= axis.source - 1)
    return left.clip(0, axis.source - 1), np.where(outside, np.float32(0), rest)


def fixed_point(weights: Weights) -> Weights:
    """Return float32 weights in 11 bits; each is rounded by itself, so a sum may be off by one."""
    return np.rint(weights * _LINEAR_ONE).astype(np.int32)


def linear_pair(rest: Weights) -> Weights:
    """Return the weights of two neighbours, of shape (pixels, 2)."""
    return np.stack([np.float32(1) - rest, rest], axis=-1)


def linear_exact(axis: Axis) -> tuple[Index, Weights]:
    """Return pixels and weights of INTER_LINEAR_EXACT, in 8 bits, of shape (pixels, 2)."""
    position = axis.step * (np.arange(axis.target) + 0.5) - 0.5
    left = np.floor(position).astype(np.int64)
    second = np.rint((position - left) * 256).astype(np.int32)
    second[(left < 0) | (left >= axis.source - 1)] = 0
    return left.clip(0, axis.source - 1), np.stack([256 - second, second], axis=-1)


def cubic(rest: Weights) -> Weights:
    """Return the weights of four neighbours in the arithmetic of *rest*, the last by difference."""
    one, x = rest.dtype.type(1), rest
    a = rest.dtype.type(_A)
    first = ((a * (x + one) - 5 * a) * (x + one) + 8 * a) * (x + one) - 4 * a
    second = ((a + 2) * x - (a + 3)) * x * x + one
    third = ((a + 2) * (one - x) - (a + 3)) * (one - x) * (one - x) + one
    return np.stack([first, second, third, one - first - second - third], axis=-1)


def lanczos4(rest: Weights) -> Weights:
    """Return the weights of eight neighbours, of shape (pixels, 8)."""
    signs = np.array(
        [
            (1, 0),
            (-_S45, -_S45),
            (0, 1),
            (_S45, -_S45),
            (-1, 0),
            (_S45, _S45),
            (0, -1),
            (-_S45, _S45),
        ]
    )
    three = np.float32(3)
    start = -(rest + three).astype(np.float64) * math.pi * 0.25
    sine, cosine = np.sin(start)[:, None], np.cos(start)[:, None]
    distance = (rest[:, None] + three) - np.arange(8, dtype=np.float32)
    angle = -distance.astype(np.float64) * math.pi * 0.25
    with np.errstate(divide="ignore", invalid="ignore"):
        values = ((signs[:, 0] * sine + signs[:, 1] * cosine) / (angle * angle)).astype(np.float32)
    values[np.abs(distance) < _ON_THE_SPOT] = np.float32(1e30)
    total = np.zeros(len(rest), np.float32)
    for tap in range(8):
        total = total + values[:, tap]
    weights: Weights = values * (np.float32(1) / total)[:, None]
    return weights


def shrinking_cells(axis: Axis) -> tuple[Index, Weights]:
    """Return the pixels of each cell of INTER_AREA and their weights, of shape (pixels, most).

    Cells of fewer pixels than the largest are filled up with weights of 0.
    """
    step = axis.step
    cells = [_cell(output * step, step, axis.source) for output in range(axis.target)]
    most = max(map(len, cells))
    index = np.zeros((axis.target, most), np.int64)
    weights = np.zeros((axis.target, most), np.float32)
    for output, cell in enumerate(cells):
        for place, (pixel, weight) in enumerate(cell):
            index[output, place], weights[output, place] = pixel, weight
    return index, weights


def _cell(start: float, step: float, source: int) -> list[tuple[int, float]]:
    end = start + step
    width = min(step, source - start)
    last = min(math.floor(end), source - 1)
    first = min(math.ceil(start), last)
    pixels = []
    if first - start > _PARTIAL_CELL:
        pixels.append((first - 1, (first - start) / width))
    pixels.extend((pixel, 1.0 / width) for pixel in range(first, last))
    if end - last > _PARTIAL_CELL:
        pixels.append((last, min(end - last, 1.0, width) / width))
    return pixels
