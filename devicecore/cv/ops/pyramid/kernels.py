"""Triton kernel of images of half the size, blurred before.

Rows are summed below each other first, two bytes in the halves of each word: sums of five have 12
bits, and sums of five of these have 16.
"""

from __future__ import annotations

import triton
import triton.language as tl

from devicecore.cv.triton_support.kernels.swar import bordered, inner_place, read, write
from devicecore.cv.triton_support.kernels.weighted_sums import split


@triton.jit
def _both(even, odd, FIRST: tl.constexpr, SECOND: tl.constexpr, BEFORE: tl.constexpr):
    """Return the values of two bytes in the halves of a word.

    Args:
        even: For each word values of its bytes 0 and 2.
        odd: The same of its bytes 1 and 3.
        FIRST: A byte, counted from the first word after those *BEFORE* it.
        SECOND: Another one.
        BEFORE: How many words are left of that.
    """
    low = (even if FIRST % 2 == 0 else odd)[FIRST // 4 + BEFORE]
    high = (even if SECOND % 2 == 0 else odd)[SECOND // 4 + BEFORE]
    low = low & 0xFFFF if FIRST % 4 < 2 else low >> 16
    high = high << 16 if SECOND % 4 < 2 else high & 0xFFFF0000
    return low | high


@triton.jit
def _across(even, odd, START: tl.constexpr, CHANNELS: tl.constexpr, BEFORE: tl.constexpr):
    """Return bytes *START* and *START* + 2 of a result, from sums of rows."""
    first: tl.constexpr = START + START // CHANNELS * CHANNELS
    second: tl.constexpr = START + 2 + (START + 2) // CHANNELS * CHANNELS
    total = _both(even, odd, first, second, BEFORE) * 6 + 0x00800080
    for far in tl.static_range(1, 3):
        own = _both(even, odd, first - far * CHANNELS, second - far * CHANNELS, BEFORE)
        own += _both(even, odd, first + far * CHANNELS, second + far * CHANNELS, BEFORE)
        total += own * (4 if far == 1 else 1)
    return (total >> 8) & 0x00FF00FF


@triton.jit
def _inner(
    source,
    target,
    at,
    top,
    height,
    length,
    BORDER: tl.constexpr,
    CHANNELS: tl.constexpr,
    BEFORE: tl.constexpr,
    GROUP: tl.constexpr,
    ROWS: tl.constexpr,
    AHEAD: tl.constexpr,
):
    highest = 2 * top - 2
    lowest = highest + (2 * ROWS + 2)
    rows = ()
    for step in tl.static_range(3 + 2 * AHEAD):
        row = source + bordered(highest + step, height, BORDER) * length
        rows = rows + (read(row, at, (), BEFORE, 1, GROUP, True),)  # noqa: RUF005 - no unpacking
    even, odd = split(rows[0])
    upper = even + odd
    even, odd = split(rows[1])
    own = even + odd
    even, odd = split(rows[2])
    last = even + odd
    above = ()
    for place in tl.static_range(len(last)):
        total = upper[place] + own[place] * 4 + last[place] * 6
        above = above + (total,)  # noqa: RUF005 - the same
    queue = ()
    for step in tl.static_range(2 * AHEAD):
        queue = queue + (rows[3 + step],)  # noqa: RUF005 - the same
    count: tl.constexpr = len(last) // 2
    for line in range(ROWS):
        for step in tl.static_range(2):
            place = tl.minimum(highest + (2 * line + 3 + 2 * AHEAD + step), lowest)
            row = source + bordered(place, height, BORDER) * length
            queue = queue + (read(row, at, (), BEFORE, 1, GROUP, True),)  # noqa: RUF005 - the same
        even, odd = split(queue[0])
        own = even + odd
        even, odd = split(queue[1])
        lower = even + odd
        even = ()
        odd = ()
        rest = ()
        for place in tl.static_range(2 * count):
            both = own[place] * 4 + lower[place]
            if place < count:
                even = even + (above[place] + both,)  # noqa: RUF005 - the same
            else:
                odd = odd + (above[place] + both,)  # noqa: RUF005 - the same
            rest = rest + (last[place] + both + lower[place] * 5,)  # noqa: RUF005 - the same
        above = rest
        last = lower
        words = ()
        for word in tl.static_range(GROUP // 2):
            low = _across(even, odd, 4 * word, CHANNELS, BEFORE)
            high = _across(even, odd, 4 * word + 1, CHANNELS, BEFORE)
            words = words + (low | (high << 8),)  # noqa: RUF005 - the same
        y = top + line
        write(target + y * (length // 2), at // 2, words, y >= 0, length // 2, True)
        rest = ()
        for step in tl.static_range(2 * AHEAD):
            rest = rest + (queue[2 + step],)  # noqa: RUF005 - the same
        queue = rest


@triton.jit
def _summed(row, places, inside):
    """Return sums of five pixels of rows."""
    total = tl.load(row + places[2], mask=inside, other=0).to(tl.int32) * 6
    total += tl.load(row + places[1], mask=inside, other=0).to(tl.int32) * 4
    total += tl.load(row + places[3], mask=inside, other=0).to(tl.int32) * 4
    total += tl.load(row + places[0], mask=inside, other=0).to(tl.int32)
    total += tl.load(row + places[4], mask=inside, other=0).to(tl.int32)
    return total


@triton.jit
def _end(
    source,
    target,
    at,
    places,
    top,
    height,
    high,
    length,
    short,
    BORDER: tl.constexpr,
    ROWS: tl.constexpr,
):
    upper = tl.full(at.shape, 0, tl.int32)
    own = upper
    for line in range(ROWS + 1):
        y = top + line - 1
        there = 2 * y
        first = _summed(source + bordered(there + 1, height, BORDER) * length, places, top < high)
        last = _summed(source + bordered(there + 2, height, BORDER) * length, places, top < high)
        total = upper + 4 * first + last
        if line == 0:
            row = source + bordered(there, height, BORDER) * length
            own = _summed(row, places, top < high)
        else:
            byte = ((total + 128) >> 8).to(tl.uint8)
            tl.store(target + y * short + at, byte, mask=y < high)
        upper = own + 4 * first + 6 * last
        own = last


@triton.jit(do_not_specialize=["height", "width", "high", "wide", "groups", "ends", "others"])
def halve(
    source,  # bytes of images, each (height, width, CHANNELS)
    target,
    height,
    width,
    high,
    wide,
    groups,
    ends,
    others,
    BORDER: tl.constexpr,
    CHANNELS: tl.constexpr,
    BEFORE: tl.constexpr,
    GROUP: tl.constexpr,
    ROWS: tl.constexpr,
    AHEAD: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Sum five pixels of columns, and five of these sums, by 1, 4, 6, 4 and 1, at even places.

    Args:
        source: The images.
        target: The results.
        height: Of an image.
        width: Of it.
        high: The height of a result.
        wide: Its width.
        groups: Of words that are read as such, in each row.
        ends: How many bytes of a row of a result are left, at both its ends.
        others: How many programs do these; they begin first, as they take long.
        BORDER: What lies outside of an image.
        CHANNELS: Of it.
        BEFORE: How many words left of a group are read; one is read right of it.
        GROUP: How many words are in a group, which has whole pixels.
        ROWS: How many rows of a result a strip has.
        AHEAD: For how many of these pixels are read before they are needed.
        BLOCK: How many groups, or bytes of the ends, a program has.
    """
    image = tl.program_id(1).to(tl.int64)
    length, short = width * CHANNELS, wide * CHANNELS
    source += image * height * length
    target += image * high * short
    if tl.program_id(0) >= others:
        at, top = inner_place(groups, high, others, BEFORE, GROUP, ROWS, BLOCK)
        _inner(
            source,
            target,
            at,
            top,
            height,
            length,
            BORDER,
            CHANNELS,
            BEFORE,
            GROUP,
            ROWS,
            AHEAD,
        )
    else:
        item = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        at = item % ends
        at = tl.where(at < 2 * GROUP, at, short - ends + at)
        pixel = at // CHANNELS
        places = ()
        for tap in tl.static_range(-2, 3):
            place = bordered(2 * pixel + tap, width, BORDER) * CHANNELS + at - pixel * CHANNELS
            places = places + (place,)  # noqa: RUF005 - Triton knows no unpacking
        top = item // ends * ROWS
        _end(source, target, at, places, top, height, high, length, short, BORDER, ROWS)
