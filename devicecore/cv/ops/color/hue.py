"""Conversions between BGR or RGB and HSV or HLS.

OpenCV computes most of a row with vectors, and the columns left over in another way that rounds
elsewhere.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import numpy as np
import torch

from devicecore.cv.environment import environment
from devicecore.cv.plan import Plan
from devicecore.cv.table import Table
from devicecore.cv.torch_support.fma import multiply_add
from devicecore.cv.torch_support.pixels import (
    as_bytes,
    channels_asked,
    colours,
    has_colours,
    lookup_rows,
)

if TYPE_CHECKING:
    from devicecore.cv.image import Image
    from devicecore.kernels import Exactness

    Tensor = torch.Tensor

_BITS = 12
_HALF = 1 << (_BITS - 1)
_STEP = float(np.float32(1) / np.float32(255))
_EPSILON = float(np.finfo(np.float32).eps)
# For each sixth of the circle, which of four values are blue, green and red.
_SECTORS = Table(
    np.array([[1, 3, 0], [1, 0, 2], [3, 0, 1], [0, 2, 1], [0, 1, 3], [2, 1, 0]], np.int64)
)


def to_hsv(src: Image, blue: int, *, is_full: bool) -> Plan | None:
    """Plan a conversion to HSV."""
    if not has_colours(src) or src.dtype != "uint8":
        return None
    circle = 256 if is_full else 180
    saturations, hues = _shares(255, 1), _shares(circle, 6)

    def run(images: Tensor) -> Tensor:
        blues, green, red = colours(images, blue)
        value = torch.maximum(torch.maximum(blues, green), red)
        spread = value - torch.minimum(torch.minimum(blues, green), red)
        saturation = (
            spread * lookup_rows(saturations.on(images), value) + _HALF
        ).bitwise_right_shift_(_BITS)
        others = torch.where(value == green, blues - red + 2 * spread, red - green + 4 * spread)
        way = torch.where(value == red, green - blues, others)
        hue = (way * lookup_rows(hues.on(images), spread) + _HALF).bitwise_right_shift_(_BITS)
        hue = torch.where(hue < 0, hue + circle, hue)
        return as_bytes(torch.stack((hue, saturation, value), -1))

    return Plan(run)


@cache
def _shares(whole: int, parts: int) -> Table:
    """Return a whole by each number of *parts*, and 0 by 0."""
    shares = np.zeros(256, np.int32)
    shares[1:] = np.rint((whole << _BITS) / (parts * np.arange(1, 256, dtype=np.float64)))
    return Table(shares)


def from_hsv(src: Image, blue: int, asked: int, *, is_full: bool) -> Plan | None:
    """Plan a conversion of HSV."""
    channels = channels_asked(asked, 3)
    if src.channels != 3 or channels is None or src.dtype != "uint8":
        return None
    machine = environment()
    uses_ipp = is_full and machine.uses_ipp
    with_vectors = src.width // (32 if machine.has_fma else 16) * (32 if machine.has_fma else 16)
    sixths = float(np.float32(6) / np.float32(255 if is_full else 180))
    fused = multiply_add(src, is_fused=True)

    def run(images: Tensor) -> Tensor:
        hue, saturation, value = colours(images, 0, torch.float32)
        saturation, value = saturation * _STEP, value * _STEP
        sector, part = _sector(hue * sixths)
        if machine.has_fma:
            falling, rising = fused(-saturation, part, 1), fused(-saturation, 1 - part, 1)
        else:
            falling, rising = 1 - saturation * part, 1 - saturation * (1 - part)
        values = (value, value * (1 - saturation), value * falling, value * rising)
        found = _picked(values, sector, blue) * 255
        whole = found.round()
        if with_vectors and not uses_ipp:
            whole[:, :, :with_vectors] = found[:, :, :with_vectors].trunc()
        return _opaque(as_bytes(whole), channels)

    return Plan(run, "lsb1" if uses_ipp else _promise())


def to_hls(src: Image, blue: int, *, is_full: bool) -> Plan | None:
    """Plan a conversion to HLS."""
    machine = environment()
    if not has_colours(src) or src.dtype != "uint8" or (is_full and machine.uses_ipp):
        return None
    with_vectors = src.width // (8 if machine.has_fma else 4) * (8 if machine.has_fma else 4)
    circle = float(np.float32(256 if is_full else 180) / np.float32(360))
    add = multiply_add(src, is_fused=machine.has_fma)

    def run(images: Tensor) -> Tensor:
        blues, green, red = (each * _STEP for each in colours(images, blue, torch.float32))
        highest = torch.maximum(torch.maximum(blues, green), red)
        lowest = torch.minimum(torch.minimum(blues, green), red)
        spread, both = highest - lowest, highest + lowest
        lightness = both * 0.5
        rest = 2 - both
        # The columns left over subtract one after the other.
        rest[:, :, with_vectors:] = (2 - highest - lowest)[:, :, with_vectors:]
        saturation = spread / torch.where(lightness < 0.5, both, rest)
        is_red, is_green = highest == red, highest == green
        way = torch.where(is_red, green - blues, torch.where(is_green, blues - red, red - green))
        starts = torch.where(is_green, 120.0, 240.0).masked_fill_(is_red, 0)
        is_negative = is_red & (green < blues)
        # A number by a tensor would be its reciprocal, rounded, times the number.
        step = torch.full_like(spread, 60).div_(spread)
        turned = starts.masked_fill(is_negative, 360)
        # A negative angle gets its full turn in the same step only with vectors.
        hue, later = add(way, step, turned), add(way, step, starts)
        later = later[:, :, with_vectors:]
        hue[:, :, with_vectors:] = torch.where(later < 0, later + 360, later)
        is_gray = spread <= _EPSILON
        result = torch.stack(
            (
                (hue * circle).masked_fill_(is_gray, 0),
                lightness * 255,
                saturation.masked_fill_(is_gray, 0) * 255,
            ),
            -1,
        )
        return as_bytes(result.round_())

    return Plan(run, _promise())


def from_hls(src: Image, blue: int, asked: int, *, is_full: bool) -> Plan | None:
    """Plan a conversion of HLS."""
    channels = channels_asked(asked, 3)
    if src.channels != 3 or channels is None or src.dtype != "uint8":
        return None
    sixths = float(np.float32(6) / np.float32(255 if is_full else 180))

    def run(images: Tensor) -> Tensor:
        hue, lightness, saturation = colours(images, 0, torch.float32)
        lightness, saturation = lightness * _STEP, saturation * _STEP
        sector, part = _sector(hue * sixths)
        share = lightness * saturation
        away = torch.where(lightness <= 0.5, share, saturation - share)
        high, low = lightness + away, lightness - away
        way = away * (part + part)
        result = _picked((high, low, high - way, low + way), sector, blue) * 255
        return _opaque(as_bytes(result.round_()), channels)

    # Of a whole byte of hues, IPP and fused vectors round some colours to the other side.
    return Plan(run, "lsb1" if is_full else _promise())


def _promise() -> Exactness:
    """Return what is promised where vectors and what is fused in them decide about roundings."""
    return "exact" if environment().is_x86 else "lsb1"


def _sector(sixths: Tensor) -> tuple[Tensor, Tensor]:
    """Return which sixth of the circle, and how far into it."""
    whole = sixths.floor()
    return whole.to(torch.int64) % 6, sixths - whole


def _picked(values: tuple[Tensor, ...], sector: Tensor, blue: int) -> Tensor:
    places = _SECTORS.on(sector)
    if blue:
        places = places.flip(1)
    return torch.stack(values, -1).gather(-1, lookup_rows(places, sector))


def _opaque(result: Tensor, channels: int) -> Tensor:
    if channels == 3:
        return result
    return torch.nn.functional.pad(result, (0, 1), value=255)
