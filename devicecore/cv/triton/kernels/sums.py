"""Triton's kernel of sums of bytes by whole weights, two of them in the halves of each word.

Arithmetic of whole words is right for both halves as long as each of the last sums, with what is
added to it so that it is not negative, has 16 bits: what sums before it borrow from each other is
given back.
"""

from __future__ import annotations

import triton
import triton.language as tl

from devicecore.cv.triton.kernels.halves import greater, lesser
from devicecore.cv.triton.kernels.words import (
    PART,
    bordered,
    end_bytes,
    end_place,
    inner_place,
    pair,
    read,
    write,
    write_pairs,
)

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
def _below(rows, STEP: tl.constexpr, START: tl.constexpr, ORDER: tl.constexpr, DOWN: tl.constexpr):
    """Return sums of rows, the last of which is that of *STEP*."""
    upper = rows[STEP - len(ORDER) + 1]
    total = upper[2 * ORDER[0] + START] * DOWN[0]
    for line in tl.static_range(1, len(ORDER)):
        own = rows[STEP - len(ORDER) + 1 + line]
        total += own[2 * ORDER[line] + START] * DOWN[line]
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
def _strip(
    source,
    target,
    at,
    places,
    top,
    height,
    length,
    LINES: tl.constexpr,
    ORDER: tl.constexpr,
    DOWN: tl.constexpr,
    TOP: tl.constexpr,
    LEFT: tl.constexpr,
    WIDTH: tl.constexpr,
    ADDED: tl.constexpr,
    FINISH: tl.constexpr,
    NUMBER: tl.constexpr,
    BORDER: tl.constexpr,
    NATIVE: tl.constexpr,
    CHANNELS: tl.constexpr,
    BEFORE: tl.constexpr,
    AFTER: tl.constexpr,
    ROWS: tl.constexpr,
    INNER: tl.constexpr,
):
    rows = ()
    for step in tl.static_range(ROWS + len(ORDER) - 1):
        row = source + bordered(top + (step - TOP), height, BORDER) * length
        even, odd = split(read(row, at, places, BEFORE, AFTER, INNER))
        found = ()
        for line in tl.static_range(len(LINES) // WIDTH):
            for start in tl.static_range(2):
                one = along(even, odd, LINES, start, line * WIDTH, WIDTH, LEFT, CHANNELS, BEFORE)
                found = found + (one,)  # noqa: RUF005 - Triton knows no unpacking
        rows = rows + (found,)  # noqa: RUF005 - the same
        if step >= len(ORDER) - 1:
            y = top + (step - len(ORDER) + 1)
            low = _below(rows, step, 0, ORDER, DOWN) + ADDED
            high = _below(rows, step, 1, ORDER, DOWN) + ADDED
            if FINISH == "shift":  # by NUMBER bits, of sums that have no sign
                low, high = (low >> NUMBER) & _BYTES, (high >> NUMBER) & _BYTES
            elif FINISH == "divide":  # by multiplication with NUMBER
                low, high = _quotients(low, NUMBER), _quotients(high, NUMBER)
            else:  # bytes or int16, after NUMBER bits are rounded off
                low, high = _rounded(low, NUMBER), _rounded(high, NUMBER)
            if FINISH == "int16":
                low = (low + (0x8000 - (0x8000 >> NUMBER)) * _BOTH) ^ _SIGNS
                high = (high + (0x8000 - (0x8000 >> NUMBER)) * _BOTH) ^ _SIGNS
                write_pairs(target + y * length, at, low, high, y < height, length, INNER)
            else:
                if FINISH == "bytes":
                    least = tl.full(at.shape, (0x8000 >> NUMBER) * _BOTH, tl.uint32)
                    low = lesser(greater(low, least, NATIVE), least + _BYTES, NATIVE) - least
                    high = lesser(greater(high, least, NATIVE), least + _BYTES, NATIVE) - least
                write(target + y * length, at, low | (high << 8), y < height, length, INNER)


@triton.jit(do_not_specialize=["height", "length", "words", "inner", "ends"])
def correlate(
    source,  # bytes of images, each (height, length)
    target,
    height,
    length,
    words,
    inner,
    ends,
    LINES: tl.constexpr,
    ORDER: tl.constexpr,
    DOWN: tl.constexpr,
    TOP: tl.constexpr,
    LEFT: tl.constexpr,
    WIDTH: tl.constexpr,
    ADDED: tl.constexpr,
    FINISH: tl.constexpr,
    NUMBER: tl.constexpr,
    BORDER: tl.constexpr,
    NATIVE: tl.constexpr,
    CHANNELS: tl.constexpr,
    BEFORE: tl.constexpr,
    AFTER: tl.constexpr,
    ROWS: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Sum the pixels of windows by weight: those of each row once, and then rows below each other.

    LINES has the different rows of a kernel one after the other, each of *WIDTH* weights. ORDER
    says which of them are below each other, and DOWN by what weight each row counts. *LEFT* and
    *TOP* are the anchor, ADDED goes to both halves of each sum, and FINISH makes bytes of sums.
    """
    image = tl.program_id(2).to(tl.int64) * height * length
    source += image
    target += image
    if tl.program_id(0) < inner:
        at, top = inner_place(words, height, BEFORE, AFTER, ROWS, BLOCK)
        _strip(
            source,
            target,
            at,
            (),
            top,
            height,
            length,
            LINES,
            ORDER,
            DOWN,
            TOP,
            LEFT,
            WIDTH,
            ADDED,
            FINISH,
            NUMBER,
            BORDER,
            NATIVE,
            CHANNELS,
            BEFORE,
            AFTER,
            ROWS,
            True,
        )
    else:
        at, tops = end_place(inner, words, ends, BEFORE, ROWS, BLOCK)
        places = end_bytes(at, length, BEFORE, AFTER, CHANNELS, BORDER)
        for part in range(ROWS // PART):
            _strip(
                source,
                target,
                at,
                places,
                tops + part * PART,
                height,
                length,
                LINES,
                ORDER,
                DOWN,
                TOP,
                LEFT,
                WIDTH,
                ADDED,
                FINISH,
                NUMBER,
                BORDER,
                NATIVE,
                CHANNELS,
                BEFORE,
                AFTER,
                PART,
                False,
            )
