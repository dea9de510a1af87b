"""Triton's kernel of medians of nine bytes."""

from __future__ import annotations

import triton
import triton.language as tl

from devicecore.cv.triton.kernels.halves import greater, joined, lesser, split
from devicecore.cv.triton.kernels.strips import passed
from devicecore.cv.triton.kernels.words import pair

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
def _along(
    words,
    _given,
    _SETTINGS: tl.constexpr,
    NATIVE: tl.constexpr,
    CHANNELS: tl.constexpr,
    BEFORE: tl.constexpr,
    GROUP: tl.constexpr,
):
    """Return the sorted values of rows of three, for both pairs of each word."""
    even, odd = split(words)
    found = ()
    for word in tl.static_range(GROUP):
        for start in tl.static_range(2):
            left = pair(even, odd, start - CHANNELS, BEFORE + word)
            own = pair(even, odd, start, BEFORE + word)
            right = pair(even, odd, start + CHANNELS, BEFORE + word)
            found = found + _sorted(left, own, right, NATIVE)
    return found


@triton.jit
def _below(
    window,
    _given,
    _SETTINGS: tl.constexpr,
    NATIVE: tl.constexpr,
    GROUP: tl.constexpr,
    STEP: tl.constexpr,
):
    """Return words of medians."""
    found = ()
    for word in tl.static_range(GROUP):
        both = ()
        for start in tl.static_range(2):
            three = ()
            for line in tl.static_range(3):
                row = window[line]
                sorts = ()
                for place in tl.static_range(3):
                    sorts = sorts + (row[6 * word + 3 * start + place],)  # noqa: RUF005 - the same
                three = three + (sorts,)  # noqa: RUF005 - the same
            one = _median(three[0], three[1], three[2], STEP % 2 == 0, NATIVE)
            both = both + (one,)  # noqa: RUF005 - the same
        found = found + (joined(both[0], both[1]),)  # noqa: RUF005 - the same
    return found


@triton.jit(do_not_specialize=["height", "length", "words", "groups", "ends", "others"])
def median(
    source,
    target,
    height,
    length,
    words,
    groups,
    ends,
    others,
    SETTINGS: tl.constexpr,
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
    """Take medians of squares of three; see `passed` for the arguments. There are no SETTINGS."""
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
        _REPLICATE,
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
