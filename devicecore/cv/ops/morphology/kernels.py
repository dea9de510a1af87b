"""Triton kernel of the minimum and maximum of uint8 in a window."""

from __future__ import annotations

import triton
import triton.language as tl

from devicecore.cv.triton_support.kernels.packed_u8x2 import greater, joined, lesser, split
from devicecore.cv.triton_support.kernels.strips import passed
from devicecore.cv.triton_support.kernels.swar import pair

# OpenCV's number of a border that adds no values of its own.
_REPLICATE = tl.constexpr(1)


@triton.jit
def _picked(a, b, GREATEST: tl.constexpr, NATIVE: tl.constexpr):
    return greater(a, b, NATIVE) if GREATEST else lesser(a, b, NATIVE)


@triton.jit
def _in_row(
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
    result = ()
    for place in tl.static_range(WIDTH):
        if (MASK >> place) & 1 == 1:
            own = pair(even, odd, (place - LEFT) * CHANNELS + START, BEFORE)
            result = (own,) if len(result) == 0 else (_picked(result[0], own, GREATEST, NATIVE),)
    return result[0]


@triton.jit
def _along(
    words,
    _given,
    SETTINGS: tl.constexpr,
    NATIVE: tl.constexpr,
    CHANNELS: tl.constexpr,
    BEFORE: tl.constexpr,
    GROUP: tl.constexpr,
):
    """Return extremes of both pairs of each word, for each of the different rows of the element."""
    lines: tl.constexpr = SETTINGS[0]
    even, odd = split(words)
    result = ()
    for word in tl.static_range(GROUP):
        for line in tl.static_range(len(lines)):
            for start in tl.static_range(2):
                one = _in_row(
                    even,
                    odd,
                    start,
                    lines[line],
                    SETTINGS[2],
                    SETTINGS[3],
                    CHANNELS,
                    BEFORE + word,
                    SETTINGS[4],
                    NATIVE,
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
    """Return words of the extremes of rows."""
    order: tl.constexpr = SETTINGS[1]
    count: tl.constexpr = 2 * len(SETTINGS[0])
    result = ()
    for word in tl.static_range(GROUP):
        low = window[0][word * count + 2 * order[0]]
        high = window[0][word * count + 2 * order[0] + 1]
        for line in tl.static_range(1, len(order)):
            other = window[line]
            low = _picked(low, other[word * count + 2 * order[line]], SETTINGS[4], NATIVE)
            high = _picked(high, other[word * count + 2 * order[line] + 1], SETTINGS[4], NATIVE)
        result = result + (joined(low, high),)  # noqa: RUF005 - Triton knows no unpacking
    return result


@triton.jit(do_not_specialize=["height", "length", "words", "groups", "ends", "others"])
def extremes(
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
    """Take extremes over the pixels of an element; see `passed` for most arguments.

    SETTINGS are its different rows, each with a bit for each of its pixels; which of these rows are
    below each other; how many pixels are left of its anchor, and how many are in a row; and whether
    it takes the greatest bytes.
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
