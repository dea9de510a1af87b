"""What Triton's kernels read between the pixels of images of bytes, as OpenCV does since version 5.

Places are float32; what is fused is fused by name.
"""

from __future__ import annotations

import triton
import triton.language as tl

from devicecore.cv.triton.kernels.pixels import (
    PLACE,
    ROUNDING,
    as_placed,
    byte,
    last_byte,
    load_pair,
    rounded,
)

_UNCOUNTABLE = tl.constexpr(2147483648.0)
_ROUNDING_BITS = tl.constexpr(0x4B400000)
# OpenCV's numbers of borders.
_CONSTANT, _REPLICATE, _REFLECT, _WRAP = (tl.constexpr(number) for number in range(4))
# In their place, where no place is outside.
INNER = tl.constexpr(-1)


@triton.jit
def _countable(place):
    """Return places; those that cannot be counted are outside, before the first pixel."""
    return tl.where(tl.abs(place) < _UNCOUNTABLE, place, -2.0)


@triton.jit
def _near(place, length):
    """Return a place that is a little outside where it is far outside."""
    return tl.minimum(tl.maximum(_countable(place), -2.0), length + 1.0)


@triton.jit
def _floor(place):
    """Return the whole number below a small float32; cards have no quick instruction for it."""
    whole = rounded(place)
    return tl.where(whole > place, whole - 1.0, whole)


@triton.jit
def _even(place):
    """Return the whole number next to a float32 of any size, half to even."""
    whole = tl.floor(place)
    rest = place - whole
    is_odd = whole - 2.0 * tl.floor(whole * 0.5) == 1.0
    return tl.where((rest > 0.5) | ((rest == 0.5) & is_odd), whole + 1.0, whole)


@triton.jit
def _as_integer(whole):
    """Return small whole numbers of float32 as int32, by their bits."""
    return (whole + ROUNDING).to(tl.int32, bitcast=True) - _ROUNDING_BITS


@triton.jit
def _bordered(place, length, BORDER: tl.constexpr):
    """Return which pixel of an axis a border has at a whole place, however far outside."""
    if BORDER == INNER:
        return place
    if BORDER <= _REPLICATE:
        return tl.minimum(tl.maximum(place, 0), length - 1)
    if BORDER == _WRAP:
        rest = place % length  # with the sign of the place
        return tl.where(rest < 0, rest + length, rest)
    period = 2 * length if BORDER == _REFLECT else tl.maximum(2 * length - 2, 1)
    rest = place % period
    rest = tl.where(rest < 0, rest + period, rest)
    turned = period - 1 - rest if BORDER == _REFLECT else period - rest
    return tl.minimum(tl.where(rest < length, rest, turned), length - 1)


@triton.jit
def _pixel(
    source, begin, x, y, width, height, value, wanted, BORDER: tl.constexpr, CHANNELS: tl.constexpr
):
    """Return the pixels at whole places, each in a word."""
    column = _bordered(x, width, BORDER)
    row = _bordered(y, height, BORDER)
    at = source + (begin + (row * width + column) * CHANNELS)
    found = tl.load(at, mask=wanted, other=0).to(tl.int32)
    for channel in tl.static_range(1, CHANNELS):
        one = tl.load(at + channel, mask=wanted, other=0).to(tl.int32)
        found |= one << (8 * channel)
    if BORDER == _CONSTANT:
        found = tl.where((column == x) & (row == y), found, value)
    return found


@triton.jit
def _pair(
    source, begin, x, y, width, height, value, wanted, BORDER: tl.constexpr, CHANNELS: tl.constexpr
):
    """Return the pixels at whole places and those to the right of them, each in a word.

    Both are read at once, which needs a border that repeats the last pixel, or a constant one.
    """
    first = x if BORDER == INNER else tl.minimum(tl.maximum(x, 0), width - 2)
    row = _bordered(y, height, BORDER)
    words = source.to(tl.pointer_type(tl.int32)) + (begin >> 2)
    at = (begin & 3).to(tl.int32) + (row * width + first) * CHANNELS
    found = load_pair(words, at, wanted, CHANNELS)
    left = found[0]
    if CHANNELS == 4:
        right = found[1]
    elif CHANNELS == 3:
        right = ((left >> 24) & 255) | (found[1] << 8)
    else:
        right = left >> (8 * CHANNELS)
    if BORDER == INNER:
        return left, right
    moved = x - first
    own = tl.where(moved > 0, right, left)
    beside = tl.where(moved < 0, left, right)
    if BORDER == _CONSTANT:
        there = row == y
        own = tl.where(there & (moved.to(tl.uint32) < 2), own, value)
        beside = tl.where(there & ((moved + 1).to(tl.uint32) < 2), beside, value)
    return own, beside


@triton.jit
def _mixed(first, second, third, last, x, y, CHANNEL: tl.constexpr):
    """Return one channel between four pixels."""
    found = as_placed(byte((first,), CHANNEL))
    under = as_placed(byte((third,), CHANNEL))
    beside = as_placed(byte((second,), CHANNEL)) - found
    last_step = as_placed(byte((last,), CHANNEL)) - under
    upper = tl.fma(x, beside, found - PLACE)
    lower = tl.fma(x, last_step, under - PLACE)
    return last_byte(tl.fma(y, lower - upper, upper) + ROUNDING)


@triton.jit
def store_sample(
    source,  # bytes of images
    target,  # where the samples go
    begin,  # byte where the image begins
    x,
    y,
    width,
    height,
    value,  # of what is outside, a byte for each channel in one word
    wanted,
    NEAREST: tl.constexpr,
    BORDER: tl.constexpr,
    PAIRS: tl.constexpr,  # whether neighbours are read at once
    CHANNELS: tl.constexpr,
):
    """Write what an image has at places."""
    if BORDER <= _REPLICATE:
        if BORDER != INNER:
            x = _near(x, width)
            y = _near(y, height)
        left = rounded(x) if NEAREST else _floor(x)
        top = rounded(y) if NEAREST else _floor(y)
        column, row = _as_integer(left), _as_integer(top)
    else:
        x = _countable(x)
        y = _countable(y)
        left = _even(x) if NEAREST else tl.floor(x)
        top = _even(y) if NEAREST else tl.floor(y)
        column, row = left.to(tl.int32), top.to(tl.int32)
    if NEAREST:
        found = _pixel(source, begin, column, row, width, height, value, wanted, BORDER, CHANNELS)
        for channel in tl.static_range(CHANNELS):
            tl.store(target + channel, byte((found,), channel).to(tl.uint8), mask=wanted)
    else:
        if PAIRS:
            first, second = _pair(
                source, begin, column, row, width, height, value, wanted, BORDER, CHANNELS
            )
            third, last = _pair(
                source, begin, column, row + 1, width, height, value, wanted, BORDER, CHANNELS
            )
        else:
            first = _pixel(
                source, begin, column, row, width, height, value, wanted, BORDER, CHANNELS
            )
            second = _pixel(
                source, begin, column + 1, row, width, height, value, wanted, BORDER, CHANNELS
            )
            third = _pixel(
                source, begin, column, row + 1, width, height, value, wanted, BORDER, CHANNELS
            )
            last = _pixel(
                source, begin, column + 1, row + 1, width, height, value, wanted, BORDER, CHANNELS
            )
        for channel in tl.static_range(CHANNELS):
            one = _mixed(first, second, third, last, x - left, y - top, channel)
            tl.store(target + channel, one.to(tl.uint8), mask=wanted)
