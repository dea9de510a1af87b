"""Samples uint8 images between pixels, as OpenCV does since version 5.

Places are float32; what is fused is fused by name.
"""

from __future__ import annotations

import triton
import triton.language as tl

from devicecore.cv.triton_support.kernels.pixels import (
    PLACE,
    ROUNDING,
    as_integer,
    byte,
    bytes_of,
    floor_placed,
    four_of,
    group_of,
    load_pair,
    moved_down,
    place_bits,
    placed,
    rounded,
)

_UNCOUNTABLE = tl.constexpr(2147483648.0)
# The bits of `ROUNDING`, which has none below.
_ROUNDING_HIGH, _ROUNDING_SHIFT = tl.constexpr(0x4B4), tl.constexpr(20)
# OpenCV's numbers of borders.
_CONSTANT, _REPLICATE, _REFLECT, _WRAP = (tl.constexpr(number) for number in range(4))


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
    """Return the whole number below a small float32; GPUs have no quick instruction for it."""
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
def _bordered(place, length, BORDER: tl.constexpr):
    """Return which pixel of an axis a border has at a whole place, however far outside."""
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
    result = tl.load(at, mask=wanted, other=0).to(tl.int32)
    for channel in tl.static_range(1, CHANNELS):
        one = tl.load(at + channel, mask=wanted, other=0).to(tl.int32)
        result |= one << (8 * channel)
    if BORDER == _CONSTANT:
        result = tl.where((column == x) & (row == y), result, value)
    return result


@triton.jit
def _pair(
    source, begin, x, y, width, height, value, wanted, BORDER: tl.constexpr, CHANNELS: tl.constexpr
):
    """Return the pixels at whole places and those to the right of them, each in a word.

    Both are read at once, which needs a border that repeats the last pixel, or a constant one.
    """
    first = tl.minimum(tl.maximum(x, 0), width - 2)
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
    moved = x - first
    own = tl.where(moved > 0, right, left)
    beside = tl.where(moved < 0, left, right)
    if BORDER == _CONSTANT:
        there = row == y
        own = tl.where(there & (moved.to(tl.uint32) < 2), own, value)
        beside = tl.where(there & ((moved + 1).to(tl.uint32) < 2), beside, value)
    return own, beside


@triton.jit
def _placed(words, bits, BYTE: tl.constexpr, NATIVE: tl.constexpr):
    """Return a byte of a tuple of words as float32, more by `PLACE`."""
    return placed(words[BYTE // 4], bits, BYTE % 4, NATIVE)


@triton.jit
def _mixed(first, second, third, last, x, y):
    """Return one channel between four pixels, more by `ROUNDING`; the channels are by `PLACE`."""
    upper = tl.fma(x, second - first, first - PLACE)
    lower = tl.fma(x, last - third, third - PLACE)
    return tl.fma(y, lower - upper, upper) + ROUNDING


@triton.jit
def _in_word(values, NATIVE: tl.constexpr):
    """Return a word of the last bytes of one to four numbers; with others above them."""
    result = values[0]
    if len(values) > 1:
        result = bytes_of(result, values[1], 0x0040, NATIVE)
    if len(values) == 3:
        result = bytes_of(result, values[2], 0x0410, NATIVE)
    elif len(values) == 4:
        result = bytes_of(result, bytes_of(values[2], values[3], 0x0040, NATIVE), 0x5410, NATIVE)
    return result.to(tl.int32, bitcast=True)


@triton.jit
def between(upper, lower, across, down, CHANNELS: tl.constexpr, NATIVE: tl.constexpr):
    """Return pixels between those of tuples of words, of two each one after the other."""
    bits = place_bits(NATIVE)
    values = ()
    for channel in tl.static_range(CHANNELS):
        value = _mixed(
            _placed(upper, bits, channel, NATIVE),
            _placed(upper, bits, channel + CHANNELS, NATIVE),
            _placed(lower, bits, channel, NATIVE),
            _placed(lower, bits, channel + CHANNELS, NATIVE),
            across,
            down,
        )
        values = values + (value,)  # noqa: RUF005 - Triton knows no unpacking
    return _in_word(values, NATIVE)


@triton.jit
def inner_places(
    x,
    y,
    pitch,  # bytes of a row
    NEAREST: tl.constexpr,
    CHANNELS: tl.constexpr,
    NATIVE: tl.constexpr,
):
    """Return for places inside of an image which byte is theirs, and how far they are from it.

    Returns:
        The byte where the pixel left above a place begins, or the nearest one; and what is left of
        the place, across and down.
    """
    column = x + ROUNDING if NEAREST else floor_placed(x, NATIVE)
    row = y + ROUNDING if NEAREST else floor_placed(y, NATIVE)
    # What the bits of `ROUNDING` are in products is taken away at the end, modulo 2**32.
    extra = ((pitch + CHANNELS) & 0xFFF) * _ROUNDING_HIGH << _ROUNDING_SHIFT
    at = row.to(tl.int32, bitcast=True) * pitch - extra
    at += column.to(tl.int32, bitcast=True) * CHANNELS
    return at, x - (column - ROUNDING), y - (row - ROUNDING)


@triton.jit
def inner_pixels(
    source,  # bytes of images
    begin,  # byte where the image begins
    at,  # what `inner_places` returns
    across,
    down,
    pitch,  # bytes of a row
    NEAREST: tl.constexpr,
    WHOLE_ROWS: tl.constexpr,  # whether rows are whole words
    CHANNELS: tl.constexpr,
    NATIVE: tl.constexpr,
):
    """Return what an image has at places, in words of which the lower bytes are the channels.

    The places lie at least two pixels before the right and the lower end of the image: nothing is
    masked, and all words are read that may be needed.
    """
    words = source.to(tl.pointer_type(tl.int32)) + (begin >> 2)
    if not WHOLE_ROWS:
        at += (begin & 3).to(tl.int32)
    upper = _two_pixels(words + (at >> 2), at, NEAREST, CHANNELS, NATIVE)
    if NEAREST:
        return upper[0]
    if WHOLE_ROWS:
        lower = _two_pixels(words + ((at >> 2) + (pitch >> 2)), at, NEAREST, CHANNELS, NATIVE)
    else:
        below = at + pitch
        lower = _two_pixels(words + (below >> 2), below, NEAREST, CHANNELS, NATIVE)
    return between(upper, lower, across, down, CHANNELS, NATIVE)


@triton.jit
def _two_pixels(words, at, ONE: tl.constexpr, CHANNELS: tl.constexpr, NATIVE: tl.constexpr):
    """Return a tuple of the words of two neighbouring pixels, or of the first one alone.

    Args:
        words: Pointers to the word where the first one begins.
        at: Its place in bytes, modulo 4.
        ONE: Whether the second one is not needed.
        CHANNELS: Bytes of a pixel.
        NATIVE: Whether the GPU is NVIDIA's.
    """
    first = tl.load(words)
    if CHANNELS == 4:
        return first, (first if ONE else tl.load(words + 1))
    second = tl.load(words + 1)
    low = moved_down(first, second, at, NATIVE)
    if ONE or CHANNELS < 3:
        return low, low
    return low, moved_down(second, tl.load(words + 2), at, NATIVE)


@triton.jit
def afresh(place, number, NATIVE: tl.constexpr):
    """Return places, so that in a loop all that depends on them is computed again and again.

    Kept from one image for the next one it would fill so many registers that fewer threads run. The
    assembler does not know that no *number* is negative.
    """
    if NATIVE:
        code: tl.constexpr = """{
            .reg .b32 none;
            shr.u32 none, $2, 31;
            or.b32 $0, $1, none;
        }"""
        return tl.inline_asm_elementwise(
            code, "=f,f,r", [place, number], dtype=tl.float32, is_pure=True, pack=1
        )
    return place


@triton.jit
def pixels_between(
    source,  # bytes of images
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
    NATIVE: tl.constexpr,
):
    """Return what an image or its border has at places, as `inner_pixels` returns it."""
    if BORDER <= _REPLICATE:
        x = _near(x, width)
        y = _near(y, height)
        left = rounded(x) if NEAREST else _floor(x)
        top = rounded(y) if NEAREST else _floor(y)
        column, row = as_integer(left), as_integer(top)
    else:
        x = _countable(x)
        y = _countable(y)
        left = _even(x) if NEAREST else tl.floor(x)
        top = _even(y) if NEAREST else tl.floor(y)
        column, row = left.to(tl.int32), top.to(tl.int32)
    if NEAREST:
        return _pixel(source, begin, column, row, width, height, value, wanted, BORDER, CHANNELS)
    if PAIRS:
        first, second = _pair(
            source, begin, column, row, width, height, value, wanted, BORDER, CHANNELS
        )
        third, last = _pair(
            source, begin, column, row + 1, width, height, value, wanted, BORDER, CHANNELS
        )
    else:
        first = _pixel(source, begin, column, row, width, height, value, wanted, BORDER, CHANNELS)
        second = _pixel(
            source, begin, column + 1, row, width, height, value, wanted, BORDER, CHANNELS
        )
        third = _pixel(
            source, begin, column, row + 1, width, height, value, wanted, BORDER, CHANNELS
        )
        last = _pixel(
            source, begin, column + 1, row + 1, width, height, value, wanted, BORDER, CHANNELS
        )
    bits = place_bits(NATIVE)
    values = ()
    for channel in tl.static_range(CHANNELS):
        one = _mixed(
            placed(first, bits, channel, NATIVE),
            placed(second, bits, channel, NATIVE),
            placed(third, bits, channel, NATIVE),
            placed(last, bits, channel, NATIVE),
            x - left,
            y - top,
        )
        values = values + (one,)  # noqa: RUF005 - Triton knows no unpacking
    return _in_word(values, NATIVE)


@triton.jit
def store_pixels(target, pixels, stored, CHANNELS: tl.constexpr):
    """Write pixels byte by byte, of which the lower bytes of words are the channels."""
    for channel in tl.static_range(CHANNELS):
        tl.store(target + channel, byte((pixels,), channel).to(tl.uint8), mask=stored)


@triton.jit
def store_groups(
    target,  # int32
    group,  # which four pixels in the target
    stored,
    pixels,  # (groups, 2, 2) as `inner_pixels` returns them
    CHANNELS: tl.constexpr,
    NATIVE: tl.constexpr,
):
    """Write pixels in groups of four, which are whole words."""
    words = group_of(four_of(pixels), CHANNELS, NATIVE)
    for place in tl.static_range(CHANNELS):
        tl.store(target + group * CHANNELS + place, words[place], mask=stored)
