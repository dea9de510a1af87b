"""HSV and HLS of pixels in Triton; some in float32, where OpenCV's vectors round in their own way.

What is fused is fused by name.
"""

from __future__ import annotations

import triton
import triton.language as tl

from devicecore.cv.triton_support.kernels.pixels import (
    PLACE,
    ROUNDING,
    as_float,
    as_placed,
    cut,
    last_byte,
    reciprocal,
    saturated,
)

_BIT_12 = tl.constexpr(1 / 4096)
# 1 / 255 and the least difference of two numbers next to 1, in float32.
_STEP, _EPSILON = tl.constexpr(0.003921568859368563), tl.constexpr(1.1920928955078125e-07)


@triton.jit
def _share(whole, number, NATIVE: tl.constexpr):
    """Return a whole by a number, rounded; none of these is so near a half that bits matter."""
    return tl.fma(whole, reciprocal(tl.maximum(number, 1.0), NATIVE), ROUNDING) - ROUNDING


@triton.jit
def _part(number, share):
    """Return a share of a number in parts of 2**12, halves up, in the last bits.

    All but the last sum is exact, so it does not matter whether they are fused.
    """
    return tl.fma(tl.fma(number, share, 0.5), _BIT_12, ROUNDING)


@triton.jit
def to_hsv(blue, green, red, CIRCLE: tl.constexpr, NATIVE: tl.constexpr):
    """Return HSV in float32, which holds all of OpenCV's products of whole numbers."""
    blue, green, red = as_placed(blue), as_placed(green), as_placed(red)
    value = tl.maximum(tl.maximum(blue, green), red)
    spread = value - tl.minimum(tl.minimum(blue, green), red)
    saturation = _part(spread, _share(255.0 * 4096, value - PLACE, NATIVE))
    way = tl.where(
        value == green, tl.fma(spread, 2.0, blue - red), tl.fma(spread, 4.0, red - green)
    )
    way = tl.where(value == red, green - blue, way)
    hue = _part(way, _share(CIRCLE * 4096 / 6, spread, NATIVE))
    hue = tl.where(hue < ROUNDING, hue + CIRCLE, hue)
    return last_byte(hue), last_byte(saturation), last_byte(value)


@triton.jit
def _either(in_vectors, first, second, VECTORS: tl.constexpr):
    """Return the first one where OpenCV computes with vectors."""
    if VECTORS == "all":
        result = first
    elif VECTORS == "none":
        result = second
    else:
        result = tl.where(in_vectors, first, second)
    return result


@triton.jit
def _sector(hue, SIXTHS: tl.constexpr):
    """Return which sixth of the circle in float32, and how far into it."""
    turned = as_float(hue) * SIXTHS
    whole = tl.floor(turned)
    return tl.where(whole >= 6.0, whole - 6.0, whole), turned - whole


@triton.jit
def _is_odd(sector):
    return (sector == 1.0) | (sector == 3.0) | (sector == 5.0)


@triton.jit
def _placed(sector, high, low, middle):
    """Return blue, green and red of three values, whose places a sixth of the circle says."""
    blue = tl.where(sector < 2.0, low, high)
    blue = tl.where((sector == 2.0) | (sector == 5.0), middle, blue)
    green = tl.where(sector < 3.0, high, low)
    green = tl.where((sector == 0.0) | (sector == 3.0), middle, green)
    red = tl.where((sector == 2.0) | (sector == 3.0), low, high)
    red = tl.where((sector == 1.0) | (sector == 4.0), middle, red)
    return blue, green, red


@triton.jit
def from_hsv(hue, saturation, value, in_vectors, SIXTHS: tl.constexpr, VECTORS: tl.constexpr):
    """Return blue, green and red; vectors cut what others round."""
    sector, part = _sector(hue, SIXTHS)
    saturation, high = as_float(saturation) * _STEP, as_float(value) * _STEP
    way = tl.where(_is_odd(sector), part, 1.0 - part)
    middle = high * tl.fma(-saturation, way, 1.0) * 255.0
    low = high * (1.0 - saturation) * 255.0
    high *= 255.0
    return _placed(
        sector,
        _either(in_vectors, cut(high.to(tl.int32)), saturated(high), VECTORS),
        _either(in_vectors, cut(low.to(tl.int32)), saturated(low), VECTORS),
        _either(in_vectors, cut(middle.to(tl.int32)), saturated(middle), VECTORS),
    )


@triton.jit
def to_hls(blue, green, red, in_vectors, CIRCLE: tl.constexpr, VECTORS: tl.constexpr):
    """Return HLS; a circle is so much of 360 degrees."""
    blue, green, red = as_float(blue) * _STEP, as_float(green) * _STEP, as_float(red) * _STEP
    highest = tl.maximum(tl.maximum(blue, green), red)
    lowest = tl.minimum(tl.minimum(blue, green), red)
    spread, both = highest - lowest, highest + lowest
    lightness = both * 0.5
    rest = _either(in_vectors, 2.0 - both, 2.0 - highest - lowest, VECTORS)
    is_gray = spread <= _EPSILON
    safe = tl.where(is_gray, 1.0, spread)
    by = tl.where(is_gray, 1.0, tl.where(lightness < 0.5, both, rest))
    saturation = tl.where(is_gray, 0.0, tl.div_rn(spread, by))
    is_red, is_green = highest == red, highest == green
    way = tl.where(is_red, green - blue, tl.where(is_green, blue - red, red - green))
    start = tl.where(is_red, 0.0, tl.where(is_green, 120.0, 240.0))
    step = tl.div_rn(tl.full(spread.shape, 60.0, tl.float32), safe)
    # A negative angle gets its full turn in the same step only with vectors.
    turned = tl.fma(way, step, tl.where(is_red & (green < blue), 360.0, start))
    later = tl.fma(way, step, start)
    later = tl.where(later < 0.0, later + 360.0, later)
    hue = tl.where(is_gray, 0.0, _either(in_vectors, turned, later, VECTORS))
    return saturated(hue * CIRCLE), saturated(lightness * 255.0), saturated(saturation * 255.0)


@triton.jit
def from_hls(hue, lightness, saturation, SIXTHS: tl.constexpr):
    """Return blue, green and red."""
    sector, part = _sector(hue, SIXTHS)
    lightness, saturation = as_float(lightness) * _STEP, as_float(saturation) * _STEP
    share = lightness * saturation
    away = tl.where(lightness <= 0.5, share, saturation - share)
    high, low = lightness + away, lightness - away
    way = away * (part + part)
    middle = tl.where(_is_odd(sector), high - way, low + way)
    return _placed(
        sector, saturated(high * 255.0), saturated(low * 255.0), saturated(middle * 255.0)
    )
