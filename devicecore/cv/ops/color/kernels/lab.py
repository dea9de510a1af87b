"""Lab conversions in Triton, in OpenCV's fixed point."""

from __future__ import annotations

import triton
import triton.language as tl

_HALF = tl.constexpr(1 << 14)  # of 15 bits
_MIDDLE = tl.constexpr((128 << 15) + (1 << 14))
# A full X, Y or Z; up to what the cube root is straight, and where that line begins.
_ONE, _STRAIGHT_BELOW = tl.constexpr(1 << 14), tl.constexpr(3390)
_LINE = tl.constexpr((1 << 14) * 16 // 116 * 108 // 841)


@triton.jit
def _root(roots, a, b, c, WEIGHTS: tl.constexpr, FIRST: tl.constexpr):
    total = a * WEIGHTS[FIRST] + b * WEIGHTS[FIRST + 1] + c * WEIGHTS[FIRST + 2]
    return tl.load(roots + ((total + 2048) >> 12)).to(tl.int32)


@triton.jit
def to_lab(blue, green, red, light, roots, NUMBERS: tl.constexpr):
    """Return Lab, not cut yet; the numbers are weights, and what is to become of the lightness."""
    blue = tl.load(light + blue).to(tl.int32)
    green = tl.load(light + green).to(tl.int32)
    red = tl.load(light + red).to(tl.int32)
    x = _root(roots, blue, green, red, NUMBERS, 0)
    y = _root(roots, blue, green, red, NUMBERS, 3)
    z = _root(roots, blue, green, red, NUMBERS, 6)
    lightness = (y * NUMBERS[9] + (NUMBERS[10] + _HALF)) >> 15
    red_green = ((x - y) * 500 + _MIDDLE) >> 15
    yellow_blue = ((y - z) * 200 + _MIDDLE) >> 15
    return lightness, red_green, yellow_blue


@triton.jit
def _cube(root):
    """Return X or Z of what stands in for its cube root; quotients are cut towards zero."""
    size = tl.abs(root) * 108 // 841
    straight = tl.where(root < 0, -size, size) - _LINE
    cube = (((root * root) >> 14) * root) >> 14
    return tl.where(root <= _STRAIGHT_BELOW, straight, cube)


@triton.jit
def _value(values, x, y, z, WEIGHTS: tl.constexpr, FIRST: tl.constexpr):
    light = x * WEIGHTS[FIRST] + y * WEIGHTS[FIRST + 1] + z * WEIGHTS[FIRST + 2]
    light = (light + (1 << 13)) >> 14
    return tl.load(values + tl.minimum(tl.maximum(light, 0), 4095)).to(tl.int32)


@triton.jit
def from_lab(lightness, a, b, heights, roots, values, NUMBERS: tl.constexpr):
    """Return blue, green and red; the numbers are weights."""
    y = tl.load(heights + lightness)
    root = tl.load(roots + lightness)
    # OpenCV's way to divide by 500 and by 200.
    of_a = ((a * (5 * 53687) + (1 << 7)) >> 13) - 128 * _ONE // 500
    of_b = ((b * 41943 + (1 << 4)) >> 9) - 128 * _ONE // 200 + 1
    x = _cube(root + of_a)
    z = _cube(root - of_b)
    blue = _value(values, x, y, z, NUMBERS, 0)
    green = _value(values, x, y, z, NUMBERS, 3)
    red = _value(values, x, y, z, NUMBERS, 6)
    return blue, green, red
