"""Triton's kernel of the least and the greatest bytes around each one."""

from __future__ import annotations

import triton
import triton.language as tl

from devicecore.cv.triton.kernels.halves import greater, joined, lesser, split
from devicecore.cv.triton.kernels.words import (
    PART,
    bordered,
    end_bytes,
    end_place,
    inner_place,
    pair,
    read,
    write,
)

# OpenCV's number of a border that adds no values of its own.
_REPLICATE = tl.constexpr(1)


@triton.jit
def _picked(a, b, GREATEST: tl.constexpr, NATIVE: tl.constexpr):
    return greater(a, b, NATIVE) if GREATEST else lesser(a, b, NATIVE)


@triton.jit
def _along(
    even,
    odd,
    START: tl.constexpr,
    MASK: tl.constexpr,
    LEFT: tl.constexpr,
    WIDTH: tl.constexpr,
    CHANNELS: tl.constexpr,
    BEFORE: tl.constexpr,
    GREATEST: tl.constexpr,
    NATIVE: tl.constexpr,
):
    """Return the extremes in one row of those of its *WIDTH* pixels that are in *MASK*."""
    found = ()
    for place in tl.static_range(WIDTH):
        if (MASK >> place) & 1 == 1:
            own = pair(even, odd, (place - LEFT) * CHANNELS + START, BEFORE)
            found = (own,) if len(found) == 0 else (_picked(found[0], own, GREATEST, NATIVE),)
    return found[0]


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
    TOP: tl.constexpr,
    LEFT: tl.constexpr,
    WIDTH: tl.constexpr,
    GREATEST: tl.constexpr,
    NATIVE: tl.constexpr,
    CHANNELS: tl.constexpr,
    BEFORE: tl.constexpr,
    AFTER: tl.constexpr,
    ROWS: tl.constexpr,
    INNER: tl.constexpr,
):
    rows = ()
    for step in tl.static_range(ROWS + len(ORDER) - 1):
        own = source + bordered(top + (step - TOP), height, _REPLICATE) * length
        words = read(own, at, places, BEFORE, AFTER, INNER)
        even, odd = split(words)
        found = ()
        for line in tl.static_range(len(LINES)):
            for start in tl.static_range(2):
                one = _along(
                    even, odd, start, LINES[line], LEFT, WIDTH, CHANNELS, BEFORE, GREATEST, NATIVE
                )
                found = found + (one,)  # noqa: RUF005 - Triton knows no unpacking
        rows = rows + (found,)  # noqa: RUF005 - the same
        if step >= len(ORDER) - 1:
            upper = rows[step - len(ORDER) + 1]
            low, high = upper[2 * ORDER[0]], upper[2 * ORDER[0] + 1]
            for line in tl.static_range(1, len(ORDER)):
                other = rows[step - len(ORDER) + 1 + line]
                low = _picked(low, other[2 * ORDER[line]], GREATEST, NATIVE)
                high = _picked(high, other[2 * ORDER[line] + 1], GREATEST, NATIVE)
            y = top + (step - len(ORDER) + 1)
            write(target + y * length, at, joined(low, high), y < height, length, INNER)


@triton.jit(do_not_specialize=["height", "length", "words", "inner", "ends"])
def extremes(
    source,  # bytes of images, each (height, length)
    target,
    height,
    length,
    words,
    inner,
    ends,
    LINES: tl.constexpr,
    ORDER: tl.constexpr,
    TOP: tl.constexpr,
    LEFT: tl.constexpr,
    WIDTH: tl.constexpr,
    GREATEST: tl.constexpr,
    NATIVE: tl.constexpr,
    CHANNELS: tl.constexpr,
    BEFORE: tl.constexpr,
    AFTER: tl.constexpr,
    ROWS: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Take extremes over the pixels of an element: rows are read once, and kept for those below.

    LINES are the different rows of the element, each with a bit for each of its *WIDTH* pixels;
    ORDER says which of them are below each other. *LEFT* and *TOP* are its anchor.
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
            TOP,
            LEFT,
            WIDTH,
            GREATEST,
            NATIVE,
            CHANNELS,
            BEFORE,
            AFTER,
            ROWS,
            True,
        )
    else:
        at, tops = end_place(inner, words, ends, BEFORE, ROWS, BLOCK)
        places = end_bytes(at, length, BEFORE, AFTER, CHANNELS, _REPLICATE)
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
                TOP,
                LEFT,
                WIDTH,
                GREATEST,
                NATIVE,
                CHANNELS,
                BEFORE,
                AFTER,
                PART,
                False,
            )
