"""Rows of bytes read as words of four, with the bytes beside them, by kernels of neighbourhoods.

Two bytes of a word are computed at once, each in one half of 32 bits: its bytes 0 and 2 are a pair,
and its bytes 1 and 3 are another. What lies a pixel further left or right are other pairs, whatever
the number of channels.

Programs of the inner part of an image read whole words. The few words at both ends of its rows are
left to others, which read byte by byte what the border has; they do all of an image where rows do
not begin at whole words, or are short.
"""

from __future__ import annotations

import triton
import triton.language as tl

# Rows that are done together at the ends of rows, where each takes many registers.
PART = tl.constexpr(2)
# OpenCV's numbers of borders; what is none of these is BORDER_REFLECT_101.
_REPLICATE, _REFLECT = tl.constexpr(1), tl.constexpr(2)
# Added to a place left of an image, it makes the division of whole numbers one that rounds down.
_FAR = tl.constexpr(64)


@triton.jit
def bordered(place, length, BORDER: tl.constexpr):
    """Return which of *length* values stands at a place that may be a little outside of them."""
    if BORDER == _REPLICATE:
        inside = place
    elif BORDER == _REFLECT:
        inside = tl.where(place < 0, -1 - place, place)
        inside = tl.where(inside >= length, 2 * length - 1 - inside, inside)
    else:
        inside = tl.abs(place)
        inside = tl.where(inside >= length, 2 * length - 2 - inside, inside)
    return tl.minimum(tl.maximum(inside, 0), length - 1)


@triton.jit
def inner_place(
    words,
    height,
    BEFORE: tl.constexpr,
    AFTER: tl.constexpr,
    ROWS: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Return the words of a program of the inner part, and their first row.

    The last programs begin where they fit: what two of them write is the same.
    """
    first = tl.minimum(BEFORE + tl.program_id(0) * BLOCK, words - AFTER - BLOCK)
    top = tl.minimum(tl.program_id(1) * ROWS, height - ROWS)
    return first + tl.arange(0, BLOCK), top


@triton.jit
def end_place(inner, words, ends, BEFORE: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    """Return the words of a program of the ends of rows, and the first row of each.

    Args:
        inner: How many programs of the inner part there are for each strip.
        words: Of a row.
        ends: How many of these are done by such programs.
        BEFORE: How many of them are at the left end.
        ROWS: How many rows are done of each word.
        BLOCK: How many words a program has.
    """
    program = (tl.program_id(0) - inner) * tl.num_programs(1) + tl.program_id(1)
    item = program * BLOCK + tl.arange(0, BLOCK)
    word = item % ends
    return tl.where(word < BEFORE, word, words - ends + word), item // ends * ROWS


@triton.jit
def end_bytes(
    at,
    length,
    BEFORE: tl.constexpr,
    AFTER: tl.constexpr,
    CHANNELS: tl.constexpr,
    BORDER: tl.constexpr,
):
    """Return where in a row the bytes of words are, those *BEFORE* and *AFTER* them included."""
    places = ()
    for byte in tl.static_range(-4 * BEFORE, 4 + 4 * AFTER):
        place = 4 * at + byte
        pixel = (place + _FAR * CHANNELS) // CHANNELS - _FAR
        own = bordered(pixel, length // CHANNELS, BORDER) * CHANNELS + place - pixel * CHANNELS
        places = places + (own,)  # noqa: RUF005 - Triton knows no unpacking
    return places


@triton.jit
def read(row, at, places, BEFORE: tl.constexpr, AFTER: tl.constexpr, INNER: tl.constexpr):
    """Return a tuple of the words at *at*, those *BEFORE* them and those *AFTER* them.

    Args:
        row: Where a row begins.
        at: Which of its words, if all of them lie in the row.
        places: Where their bytes are otherwise.
        BEFORE: How many words left of them.
        AFTER: How many words right of them.
        INNER: Whether they all lie in the row, which begins at a whole word.
    """
    words = ()
    for place in tl.static_range(BEFORE + 1 + AFTER):
        if INNER:
            start = row.to(tl.pointer_type(tl.uint32)) + at
            word = tl.load(start + (place - BEFORE))
        else:
            word = tl.load(row + places[4 * place]).to(tl.uint32)
            for byte in tl.static_range(1, 4):
                word |= tl.load(row + places[4 * place + byte]).to(tl.uint32) << (8 * byte)
        words = words + (word,)  # noqa: RUF005 - the same
    return words


@triton.jit
def write(row, at, word, is_there, length, INNER: tl.constexpr):
    """Write words into a row, as far as it goes and where *is_there*."""
    if INNER:
        tl.store(row.to(tl.pointer_type(tl.uint32)) + at, word)
    else:
        for byte in tl.static_range(4):
            value = ((word >> (8 * byte)) & 255).to(tl.uint8)
            tl.store(row + 4 * at + byte, value, mask=is_there & (4 * at + byte < length))


@triton.jit
def write_pairs(row, at, even, odd, is_there, length, INNER: tl.constexpr):
    """Write values of 16 bits into a row, four for each word; *even* and *odd* are pairs of them.

    Args:
        row: Where it begins.
        at: Which words of the bytes they are for.
        even: The first and the third value.
        odd: The second and the fourth one.
        is_there: Whether there is such a row.
        length: How many values a row has.
        INNER: Whether all of them lie in it.
    """
    if INNER:
        low = (even & 0xFFFF) | (odd << 16)
        high = (even >> 16) | (odd & 0xFFFF0000)
        both = low.to(tl.uint64) | (high.to(tl.uint64) << 32)
        tl.store(row.to(tl.pointer_type(tl.uint64)) + at, both)
    else:
        values = row.to(tl.pointer_type(tl.uint16))
        for place in tl.static_range(4):
            own = odd if place % 2 == 1 else even
            value = ((own >> (place // 2 * 16)) & 0xFFFF).to(tl.uint16)
            tl.store(values + 4 * at + place, value, mask=is_there & (4 * at + place < length))


@triton.jit
def pair(even, odd, DISTANCE: tl.constexpr, BEFORE: tl.constexpr):
    """Return the bytes that lie *DISTANCE* bytes from bytes 0 and 2 of each word.

    Args:
        even: For each word of a row its bytes 0 and 2, in the halves of a word.
        odd: The same of its bytes 1 and 3.
        DISTANCE: To the right; to the left if it is negative.
        BEFORE: How many words lie left of the one that the bytes are for.
    """
    halves: tl.constexpr = (DISTANCE - DISTANCE % 2) // 2 + 2 * BEFORE
    stream = even if DISTANCE % 2 == 0 else odd
    if halves % 2 == 0:
        found = stream[halves // 2]
    else:
        found = (stream[halves // 2] >> 16) | (stream[halves // 2 + 1] << 16)
    return found
