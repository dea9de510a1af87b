"""OpenCV's fixed-point tables to Lab: the gamma of sRGB and cube roots."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

# Linear light has 8 steps for each step of a byte.
_STEPS = 8
_LINEAR_BELOW = np.float32(216) / np.float32(24389)
_SLOPE, _OFFSET = np.float32(841) / np.float32(108), np.float32(16) / np.float32(116)
# The numerator and the denominator of OpenCV's cube root of 0.125 to 1, the highest power first.
_ABOVE = (
    45.2548339756803022511987494,
    192.2798368355061050458134625,
    119.1654824285581628956914143,
    13.43250139086239872172837314,
    0.1636161226585754240958355063,
)
_BELOW = (
    14.80884093219134573786480845,
    151.9714051044435648558657668,
    168.5254414101568283957668343,
    33.9905941350215598754191872,
    1.0,
)
_EXPONENT, _FRACTION = 23, 29


def linear_light() -> NDArray[np.int32]:
    """Return the linear light of each value of sRGB."""
    value = (np.arange(256, dtype=np.float32) / np.float32(255)).astype(np.float64)
    light = np.where(value <= 0.04045, value / 12.92, ((value + 0.055) / 1.055) ** 2.4)
    scaled: NDArray[np.float32] = np.float32(255 * _STEPS) * light.astype(np.float32)
    return np.rint(scaled).astype(np.int32)


def cube_roots() -> NDArray[np.int32]:
    """Return the cube roots of linear light, straight near black, in parts of ``2**15``."""
    steps = np.arange(256 * 3 // 2 * _STEPS, dtype=np.float32)
    light = np.float32(1) / np.float32(255 * _STEPS) * steps
    result: NDArray[np.int32] = np.rint(np.float32(1 << 15) * root_or_line(light)).astype(np.int32)
    return result


def root_or_line(light: NDArray[Any]) -> NDArray[np.float32]:
    """Return cube roots, near black those of a straight line."""
    line = (light.astype(np.float64) * float(_SLOPE) + float(_OFFSET)).astype(np.float32)
    return np.where(light < _LINEAR_BELOW, line, _cube_root(light))


def _cube_root(x: NDArray[Any]) -> NDArray[np.float32]:
    """Return cube roots as OpenCV approximates them, which is not always the nearest number."""
    bits = x.astype(np.float32).view(np.uint32).astype(np.int64)
    exponent = ((bits >> _EXPONENT) & 255) - 127
    rest = np.fmod(exponent, 3)
    rest -= np.where(rest >= 0, 3, 0)
    fraction = (((rest + 1023) << 52) | ((bits & 0x7FFFFF) << _FRACTION)).view(np.float64)
    found = np.polyval(_ABOVE, fraction) / np.polyval(_BELOW, fraction)
    of_root = (found.view(np.int64) & ((1 << 52) - 1)) >> _FRACTION
    new_bits = (((exponent - rest) // 3 - 1 + 127) << _EXPONENT) + of_root
    root = new_bits.astype(np.uint32).view(np.float32)
    return np.where(bits, root, np.float32(0))
