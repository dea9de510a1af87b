"""Median filters for uint8 images, using sorting networks.

Windows below each other share most of their rows, and what they find of these: each step names it
by the same computation, and the compiler does it once.
"""

from __future__ import annotations

from itertools import accumulate

import triton
import triton.language as tl

from devicecore.cv.triton_support.kernels.packed_u8x2 import greater, joined, lesser, split
from devicecore.cv.triton_support.kernels.strips import passed
from devicecore.cv.triton_support.kernels.swar import pair

# OpenCV's number of the border of medians.
_REPLICATE = tl.constexpr(1)
# Pairs of places whose values are ordered one after the other: of five values; of two fives that
# are in order; and of two tens that are, of which those that may be the median of 25 come in order.
_NETWORKS = (
    ((0, 1), (3, 4), (2, 4), (2, 3), (1, 4), (0, 3), (0, 2), (1, 3), (1, 2)),
    (
        *((4, 9), (3, 8), (4, 8), (1, 6), (0, 5), (1, 5), (3, 6)),
        *((2, 7), (2, 5), (4, 7), (3, 5), (4, 6), (4, 5)),
    ),
    (
        *((5, 17), (4, 18), (4, 12), (3, 13), (5, 13), (2, 14), (9, 13), (0, 10)),
        *((7, 15), (1, 7), (6, 16), (5, 11), (7, 11), (6, 14), (9, 19), (9, 11)),
        *((6, 10), (8, 14), (8, 12), (11, 12), (8, 10), (7, 8), (9, 10)),
    ),
)
_FIVE, _FIVES, _TENS = tl.constexpr(0), tl.constexpr(1), tl.constexpr(2)
# All of them behind each other, and where each begins: Triton has no tuples of tuples here.
_LOW = tl.constexpr(tuple(low for network in _NETWORKS for low, _ in network))
_HIGH = tl.constexpr(tuple(high for network in _NETWORKS for _, high in network))
_BOUNDS = tl.constexpr(tuple(accumulate(map(len, _NETWORKS), initial=0)))
# Where these are: the place of the first, and the one behind the last.
_CENTRAL, _BEYOND = tl.constexpr(7), tl.constexpr(13)


@triton.jit
def _sorted(a, b, c, NATIVE: tl.constexpr):
    """Return three values from the least to the greatest."""
    low = lesser(lesser(a, b, NATIVE), c, NATIVE)
    high = greater(greater(a, b, NATIVE), c, NATIVE)
    # What is neither; GPUs have one instruction for three values of each of these lines.
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
def _exchanged(values, LOW: tl.constexpr, HIGH: tl.constexpr, NATIVE: tl.constexpr):
    """Return values with the lesser of two of them in the place *LOW*, which is before *HIGH*."""
    a, b = values[LOW], values[HIGH]
    lower, upper = (lesser(a, b, NATIVE),), (greater(a, b, NATIVE),)
    return values[:LOW] + lower + values[LOW + 1 : HIGH] + upper + values[HIGH + 1 :]


@triton.jit
def _ordered(values, NETWORK: tl.constexpr, NATIVE: tl.constexpr):
    """Return values after all exchanges of one of the networks."""
    begin: tl.constexpr = _BOUNDS[NETWORK]
    end: tl.constexpr = _BOUNDS[NETWORK + 1]
    for turn in tl.static_range(begin, end):
        values = _exchanged(values, _LOW[turn], _HIGH[turn], NATIVE)
    return values


@triton.jit
def _median_of_rows(rows, IS_FIRST: tl.constexpr, NATIVE: tl.constexpr):
    """Return the median of five rows of five values that are in order.

    The first of two squares below each other begins with its four lower rows, which are the upper
    ones of the other; and pairs of these are those of the two squares before, and of those behind.
    """
    shared = rows[1:] if IS_FIRST else rows[:4]
    own = rows[0] if IS_FIRST else rows[4]
    upper = _ordered(shared[0] + shared[1], _FIVES, NATIVE)
    lower = _ordered(shared[2] + shared[3], _FIVES, NATIVE)
    central = _ordered(upper + lower, _TENS, NATIVE)[_CENTRAL:_BEYOND]
    # The sixth of six and five values in order: the least that may be above five others.
    result = central[5]
    for place in tl.static_range(5):
        result = lesser(result, greater(central[place], own[4 - place], NATIVE), NATIVE)
    return result


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
    """Return the values of rows of squares in order, for both pairs of each word."""
    side: tl.constexpr = SETTINGS[0] // 2
    even, odd = split(words)
    result = ()
    for word in tl.static_range(GROUP):
        for start in tl.static_range(2):
            row = ()
            for place in tl.static_range(-side, side + 1):
                own = pair(even, odd, start + place * CHANNELS, BEFORE + word)
                row = row + (own,)  # noqa: RUF005 - Triton knows no unpacking
            if side == 1:
                result = result + _sorted(row[0], row[1], row[2], NATIVE)
            else:
                result = result + _ordered(row, _FIVE, NATIVE)
    return result


@triton.jit
def _below(
    window,
    _given,
    SETTINGS: tl.constexpr,
    NATIVE: tl.constexpr,
    GROUP: tl.constexpr,
    STEP: tl.constexpr,
):
    """Return words of medians."""
    size: tl.constexpr = SETTINGS[0]
    result = ()
    for word in tl.static_range(GROUP):
        both = ()
        for start in tl.static_range(2 * word, 2 * word + 2):
            rows = ()
            for line in tl.static_range(size):
                row = window[line]
                rows = rows + (row[size * start : size * (start + 1)],)  # noqa: RUF005 - the same
            if size == 3:
                one = _median(rows[0], rows[1], rows[2], STEP % 2 == 0, NATIVE)
            else:
                one = _median_of_rows(rows, STEP % 2 == 0, NATIVE)
            both = both + (one,)  # noqa: RUF005 - the same
        result = result + (joined(both[0], both[1]),)  # noqa: RUF005 - the same
    return result


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
    """Take medians of squares; see `passed` for most arguments.

    SETTINGS is how many rows and columns a square has: 3 or 5.
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
