"""How neighbourhood kernels pass over strips: each row is read once and kept for those below.

A thread has a group of words beside each other, so that most of what it reads lies in one piece.
Rows are read some steps before they are needed: no GPU reads ahead beyond a row that is written,
and waiting for each row takes longer than computing it.
"""

from __future__ import annotations

import triton
import triton.language as tl

from devicecore.cv.triton_support.kernels.swar import (
    bordered,
    end_bytes,
    end_place,
    inner_place,
    read,
    write,
)


@triton.jit
def _strip(
    source,
    target,
    at,
    places,
    top,
    height,
    length,
    given,
    along: tl.constexpr,
    below: tl.constexpr,
    SETTINGS: tl.constexpr,
    VALUES: tl.constexpr,
    KEPT: tl.constexpr,
    TOP: tl.constexpr,
    BORDER: tl.constexpr,
    NATIVE: tl.constexpr,
    CHANNELS: tl.constexpr,
    BEFORE: tl.constexpr,
    AFTER: tl.constexpr,
    GROUP: tl.constexpr,
    SIZE: tl.constexpr,
    ROWS: tl.constexpr,
    STEP: tl.constexpr,
    AHEAD: tl.constexpr,
    INNER: tl.constexpr,
):
    """Do rows from *top* on; see `passed` for what the arguments are."""
    highest = top - TOP
    lowest = highest + (ROWS + KEPT - 1)
    queue = ()
    for step in tl.static_range(AHEAD):
        row = source + bordered(highest + step, height, BORDER) * length
        queue = queue + (read(row, at, places, BEFORE, AFTER, GROUP, INNER),)  # noqa: RUF005 - no unpacking
    nothing = ()
    for _ in tl.static_range(GROUP * VALUES):
        nothing = nothing + (tl.full(at.shape, 0, tl.uint32),)  # noqa: RUF005 - the same
    rows = ()
    for _ in tl.static_range(KEPT):
        rows = rows + (nothing,)  # noqa: RUF005 - the same
    # What the first turns find of windows that are not whole is not written.
    for first in range(0, ROWS + KEPT, STEP):
        for step in tl.static_range(STEP):
            place = tl.minimum(highest + (first + step + AHEAD), lowest)
            row = source + bordered(place, height, BORDER) * length
            queue = queue + (read(row, at, places, BEFORE, AFTER, GROUP, INNER),)  # noqa: RUF005 - the same
            rows = rows + (along(queue[step], given, SETTINGS, NATIVE, CHANNELS, BEFORE, GROUP),)  # noqa: RUF005 - the same
            window = ()
            for line in tl.static_range(KEPT + 1):
                window = window + (rows[step + line],)  # noqa: RUF005 - the same
            found = below(window, given, SETTINGS, NATIVE, GROUP, step)
            y = top + (first + step - KEPT)
            is_there = (y >= top) & (y < height)
            write(target + y * length, at * SIZE, found, is_there, length * SIZE, INNER)
        rest = ()
        for line in tl.static_range(KEPT):
            rest = rest + (rows[STEP + line],)  # noqa: RUF005 - the same
        rows = rest
        rest = ()
        for step in tl.static_range(AHEAD):
            rest = rest + (queue[STEP + step],)  # noqa: RUF005 - the same
        queue = rest


@triton.jit
def passed(
    source,  # bytes of images, each (height, length)
    target,
    height,
    length,
    words,
    groups,
    ends,
    others,
    given,
    along: tl.constexpr,
    below: tl.constexpr,
    SETTINGS: tl.constexpr,
    VALUES: tl.constexpr,
    KEPT: tl.constexpr,
    TOP: tl.constexpr,
    BORDER: tl.constexpr,
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
    """Compute images from the windows of their pixels.

    Args:
        source: The images.
        target: The results, of the same shape; their values may have more bytes.
        height: Of an image.
        length: Of a row, in bytes.
        words: Of a row.
        groups: Of these that are read as such, in a row.
        ends: How many words are left of a row, at both its ends.
        others: How many programs do these; they begin first, as they take long.
        given: What both of the next are given besides; a tuple, as Triton has nothing that is none.
        along: Makes VALUES values for each word of what is read of a row.
        below: Makes what is written of the values of KEPT + 1 rows.
        SETTINGS: What both are compiled for.
        VALUES: How many values there are for each word.
        KEPT: How many rows above the last one are in a window.
        TOP: How many of its rows are above the one that is written.
        BORDER: What lies outside of an image.
        NATIVE: Whether two halves of a word are compared at once.
        CHANNELS: Of an image.
        BEFORE: How many words left of a group are read.
        AFTER: How many right of it.
        GROUP: How many words are in a group.
        SIZE: How many bytes are written for each that is read.
        ROWS: How many rows a strip has.
        STEP: How many of them are done in each turn of the loop.
        AHEAD: How many rows are read before they are needed.
        BLOCK: How many groups, or words of the ends, a program has.
    """
    image = tl.program_id(1).to(tl.int64) * height * length
    source += image
    target += image
    if tl.program_id(0) >= others:
        at, top = inner_place(groups, height, others, BEFORE, GROUP, ROWS, BLOCK)
        _strip(
            source,
            target,
            at,
            (),
            top,
            height,
            length,
            given,
            along,
            below,
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
            True,
        )
    else:
        at, top = end_place(words, ends, BEFORE, GROUP, ROWS, BLOCK)
        places = end_bytes(at, length, BEFORE, AFTER, CHANNELS, BORDER)
        _strip(
            source,
            target,
            at,
            places,
            top,
            height,
            length,
            given,
            along,
            below,
            SETTINGS,
            VALUES,
            KEPT,
            TOP,
            BORDER,
            NATIVE,
            CHANNELS,
            BEFORE,
            AFTER,
            1,
            SIZE,
            ROWS,
            1,
            0,
            False,
        )
