"""Triton kernel of integer-weighted sums of uint8, two of them packed in each word.

Arithmetic of whole words is right for both halves as long as each of the last sums, with what is
added to it so that it is not negative, has 16 bits: what sums before it borrow from each other is
given back.
"""

from __future__ import annotations

import triton
import triton.language as tl

from devicecore.cv.triton_support.kernels.packed_u8x2 import greater, lesser
from devicecore.cv.triton_support.kernels.strips import passed
from devicecore.cv.triton_support.kernels.swar import pair

_BOTH = tl.constexpr(0x00010001)
_BYTES = tl.constexpr(0x00FF00FF)
# Added to sums that may be negative, and their sign when it is taken off again.
_SIGNS = tl.constexpr(0x80008000)
# Bits after the point of a rounded inverse.
_DIVISION_BITS = tl.constexpr(23)


@triton.jit
def split(words):
    """Return bytes 0 and 2 of each of several words in the halves of a word, and bytes 1 and 3."""
    even = ()
    odd = ()
    for place in tl.static_range(len(words)):
        even = even + (words[place] & _BYTES,)  # noqa: RUF005 - Triton knows no unpacking
        odd = odd + ((words[place] >> 8) & _BYTES,)  # noqa: RUF005 - the same
    return even, odd


@triton.jit
def along(
    even,
    odd,
    weights,
    START: tl.constexpr,
    FIRST: tl.constexpr,
    WIDTH: tl.constexpr,
    LEFT: tl.constexpr,
    CHANNELS: tl.constexpr,
    BEFORE: tl.constexpr,
):
    """Return sums of the pixels of a row, by the *WIDTH* weights from the one at *FIRST* on."""
    total = pair(even, odd, START - LEFT * CHANNELS, BEFORE) * weights[FIRST]
    for place in tl.static_range(1, WIDTH):
        own = pair(even, odd, (place - LEFT) * CHANNELS + START, BEFORE)
        total += own * weights[FIRST + place]
    return total


@triton.jit
def _summed(window, PLACE: tl.constexpr, ORDER: tl.constexpr, DOWN: tl.constexpr):
    """Return sums of rows; of each, the values of its line of weights from *PLACE* on."""
    total = window[0][2 * ORDER[0] + PLACE] * DOWN[0]
    for line in tl.static_range(1, len(ORDER)):
        own = window[line]
        total += own[2 * ORDER[line] + PLACE] * DOWN[line]
    return total


@triton.jit
def _quotients(total, FACTOR: tl.constexpr):
    low = ((total & 0xFFFF) * FACTOR) >> _DIVISION_BITS
    high = ((total >> 16) * FACTOR) >> _DIVISION_BITS
    return low | (high << 16)


@triton.jit
def _rounded(total, BITS: tl.constexpr):
    """Return signed sums without their last bits, half to even; they still have what was added."""
    total += _SIGNS
    if BITS > 0:
        total += ((1 << (BITS - 1)) - 1) * _BOTH + ((total >> BITS) & _BOTH)
        total = (total >> BITS) & ((0xFFFF >> BITS) * _BOTH)
    return total


@triton.jit
def _along(
    words,
    _given,
    SETTINGS: tl.constexpr,
    _NATIVE: tl.constexpr,
    CHANNELS: tl.constexpr,
    BEFORE: tl.constexpr,
    GROUP: tl.constexpr,
):
    """Return sums of both pairs of each word, for each of the different rows of weights."""
    lines: tl.constexpr = SETTINGS[0]
    width: tl.constexpr = SETTINGS[4]
    even, odd = split(words)
    result = ()
    for word in tl.static_range(GROUP):
        for line in tl.static_range(len(lines) // width):
            for start in tl.static_range(2):
                one = along(
                    even,
                    odd,
                    lines,
                    start,
                    line * width,
                    width,
                    SETTINGS[3],
                    CHANNELS,
                    BEFORE + word,
                )
                result = result + (one,)  # noqa: RUF005 - Triton knows no unpacking
    return result


@triton.jit
def _below(
    window,
    _given,
    SETTINGS: tl.constexpr,
    NATIVE: tl.constexpr,
    GROUP: tl.constexpr,
    _STEP: tl.constexpr,
):
    """Return words of the sums of rows, as they are written."""
    lines: tl.constexpr = SETTINGS[0]
    order: tl.constexpr = SETTINGS[1]
    down: tl.constexpr = SETTINGS[2]
    added: tl.constexpr = SETTINGS[5]
    finish: tl.constexpr = SETTINGS[6]
    number: tl.constexpr = SETTINGS[7]
    count: tl.constexpr = len(lines) // SETTINGS[4] * 2
    result = ()
    for word in tl.static_range(GROUP):
        low = _summed(window, word * count, order, down) + added
        high = _summed(window, word * count + 1, order, down) + added
        if finish == "shift":  # by bits, of sums that have no sign
            low, high = (low >> number) & _BYTES, (high >> number) & _BYTES
        elif finish == "divide":  # by multiplication
            low, high = _quotients(low, number), _quotients(high, number)
        else:  # bytes or int16, after bits are rounded off
            low, high = _rounded(low, number), _rounded(high, number)
        if finish == "int16":
            low = (low + (0x8000 - (0x8000 >> number)) * _BOTH) ^ _SIGNS
            high = (high + (0x8000 - (0x8000 >> number)) * _BOTH) ^ _SIGNS
            first = (low & 0xFFFF) | (high << 16)
            second = (low >> 16) | (high & 0xFFFF0000)
            result = result + (first, second)  # noqa: RUF005 - Triton knows no unpacking
        else:
            if finish == "bytes":
                least = tl.full(low.shape, (0x8000 >> number) * _BOTH, tl.uint32)
                low = lesser(greater(low, least, NATIVE), least + _BYTES, NATIVE) - least
                high = lesser(greater(high, least, NATIVE), least + _BYTES, NATIVE) - least
            result = result + (low | (high << 8),)  # noqa: RUF005 - the same
    return result


@triton.jit(do_not_specialize=["height", "length", "words", "groups", "ends", "others"])
def correlate(
    source,
    target,
    height,
    length,
    words,
    groups,
    ends,
    others,
    SETTINGS: tl.constexpr,
    BORDER: tl.constexpr,
    VALUES: tl.constexpr,
    KEPT: tl.constexpr,
    TOP: tl.constexpr,
    NATIVE: tl.constexpr,
    CHANNELS: tl.constexpr,
    BEFORE: tl.constexpr,
    AFTER: tl.constexpr,
    GROUP: tl.constexpr,
    SIZE: tl.constexpr,
    ROWS: tl.constexpr,
    STEP: tl.constexpr,
    AHEAD: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Sum the pixels of windows by weight; see `passed` for most arguments.

    SETTINGS are the different rows of a kernel one after the other; which of them are below each
    other; by what weight each row counts; how many pixels are left of the anchor, and how many in a
    row; what is added to both halves of each sum; and how bytes are made of sums, with a number.
    """
    passed(
        source,
        target,
        height,
        length,
        words,
        groups,
        ends,
        others,
        (),
        _along,
        _below,
        SETTINGS,
        VALUES,
        KEPT,
        TOP,
        BORDER,
        NATIVE,
        CHANNELS,
        BEFORE,
        AFTER,
        GROUP,
        SIZE,
        ROWS,
        STEP,
        AHEAD,
        BLOCK,
    )
