"""Triton's kernel of medians of nine bytes."""

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

# OpenCV's number of the border of medians.
_REPLICATE = tl.constexpr(1)


@triton.jit
def _sorted(a, b, c, NATIVE: tl.constexpr):
    """Return three values from the least to the greatest."""
    low = lesser(lesser(a, b, NATIVE), c, NATIVE)
    high = greater(greater(a, b, NATIVE), c, NATIVE)
    # What is neither; cards have one instruction for three values of each of these lines.
    return low, a ^ b ^ c ^ low ^ high, high


@triton.jit
def _middle(a, b, c, NATIVE: tl.constexpr):
    """Return the median of three values, of which the first two are compared first."""
    low, high = lesser(a, b, NATIVE), greater(a, b, NATIVE)
    return greater(low, lesser(high, c, NATIVE), NATIVE)


@triton.jit
def _median(upper, own, lower, IS_FIRST: tl.constexpr, NATIVE: tl.constexpr):
    """Return the median of three rows of sorted values.

    What two squares below each other share is compared once: the first of them begins with its two
    lower rows, which are the upper ones of the other.
    """
    low = greater(greater(upper[0], own[0], NATIVE), lower[0], NATIVE)
    high = lesser(lesser(upper[2], own[2], NATIVE), lower[2], NATIVE)
    if IS_FIRST:
        middle = _middle(own[1], lower[1], upper[1], NATIVE)
    else:
        middle = _middle(upper[1], own[1], lower[1], NATIVE)
    return _middle(low, high, middle, NATIVE)


@triton.jit
def _strip(
    source,
    target,
    at,
    places,
    top,
    height,
    length,
    NATIVE: tl.constexpr,
    CHANNELS: tl.constexpr,
    BEFORE: tl.constexpr,
    AFTER: tl.constexpr,
    ROWS: tl.constexpr,
    INNER: tl.constexpr,
):
    rows = ()
    for step in tl.static_range(ROWS + 2):
        own = source + bordered(top + (step - 1), height, _REPLICATE) * length
        even, odd = split(read(own, at, places, BEFORE, AFTER, INNER))
        halves = ()
        for start in tl.static_range(2):
            left = pair(even, odd, start - CHANNELS, BEFORE)
            right = pair(even, odd, start + CHANNELS, BEFORE)
            found = _sorted(left, pair(even, odd, start, BEFORE), right, NATIVE)
            halves = halves + (found,)  # noqa: RUF005 - Triton knows no unpacking
        rows = rows + (halves,)  # noqa: RUF005 - the same
        if step >= 2:
            medians = ()
            for start in tl.static_range(2):
                upper, own, lower = rows[step - 2], rows[step - 1], rows[step]
                one = _median(upper[start], own[start], lower[start], step % 2 == 0, NATIVE)
                medians = medians + (one,)  # noqa: RUF005 - the same
            y = top + (step - 2)
            write(
                target + y * length, at, joined(medians[0], medians[1]), y < height, length, INNER
            )


@triton.jit(do_not_specialize=["height", "length", "words", "inner", "ends"])
def median(
    source,  # bytes of images, each (height, length)
    target,
    height,
    length,
    words,
    inner,
    ends,
    NATIVE: tl.constexpr,
    CHANNELS: tl.constexpr,
    BEFORE: tl.constexpr,
    AFTER: tl.constexpr,
    ROWS: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Take medians of squares of three; the rows of each are sorted once, and kept for others."""
    image = tl.program_id(2).to(tl.int64) * height * length
    source += image
    target += image
    if tl.program_id(0) < inner:
        at, top = inner_place(words, height, BEFORE, AFTER, ROWS, BLOCK)
        _strip(
            source, target, at, (), top, height, length, NATIVE, CHANNELS, BEFORE, AFTER, ROWS, True
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
                NATIVE,
                CHANNELS,
                BEFORE,
                AFTER,
                PART,
                False,
            )
