"""SWAR: rows of uint8 read as 32-bit words of four, with their neighbours.

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
    groups,
    height,
    others,
    BEFORE: tl.constexpr,
    GROUP: tl.constexpr,
    ROWS: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Return the first words of the groups of a program of the inner part, and their first rows.

    The last strips begin where they fit, and what is beyond the last group is that group: what is
    done twice is the same.
    """
    strips = (height + (ROWS - 1)) // ROWS
    item = (tl.program_id(0) - others) * BLOCK + tl.arange(0, BLOCK)
    item = tl.minimum(item, groups * strips - 1)
    left: tl.constexpr = (BEFORE + GROUP - 1) // GROUP
    top = tl.minimum(item // groups * ROWS, height - ROWS)
    return (item % groups + left) * GROUP, top


@triton.jit
def end_place(
    words,
    ends,
    BEFORE: tl.constexpr,
    GROUP: tl.constexpr,
    ROWS: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Return the words of a program of the ends of rows, and the first row of each.

    Args:
        words: Of a row.
        ends: How many of these are done by such programs.
        BEFORE: How many words are read left of a group.
        GROUP: How many words a group has; there are whole groups at the left end.
        ROWS: How many rows are done of each word.
        BLOCK: How many words a program has.
    """
    item = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    word = item % ends
    left: tl.constexpr = (BEFORE + GROUP - 1) // GROUP * GROUP
    return tl.where(word < left, word, words - ends + word), item // ends * ROWS


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
def _loaded(start, COUNT: tl.constexpr):
    """Return *COUNT* words by one instruction: 1, 2 or 4, from places that are multiples of it."""
    if COUNT == 1:
        words = (tl.load(start),)
    elif COUNT == 2:
        both = start[:, None] + tl.arange(0, 2)[None, :]
        words = tl.split(tl.load(tl.multiple_of(both, (1, 8))))
    else:
        every = start[:, None] + tl.arange(0, 4)[None, :]
        loaded = tl.load(tl.multiple_of(every, (1, 16)))
        even, odd = tl.split(tl.reshape(loaded, (start.shape[0], 2, 2)))
        first, third = tl.split(even)
        second, fourth = tl.split(odd)
        words = (first, second, third, fourth)
    return words


@triton.jit
def _stored(start, words, is_there):
    """Write 1, 2, 3 or 4 words; 2 and 4 to places that are multiples of that."""
    if len(words) % 2 == 1:
        for place in tl.static_range(len(words)):
            tl.store(start + place, words[place], mask=is_there)
    elif len(words) == 2:
        both = start[:, None] + tl.arange(0, 2)[None, :]
        joint = tl.join(words[0], words[1])
        tl.store(tl.multiple_of(both, (1, 8)), joint, mask=is_there[:, None])
    else:
        every = start[:, None] + tl.arange(0, 4)[None, :]
        even, odd = tl.join(words[0], words[2]), tl.join(words[1], words[3])
        joint = tl.reshape(tl.join(even, odd), (start.shape[0], 4))
        tl.store(tl.multiple_of(every, (1, 16)), joint, mask=is_there[:, None])


@triton.jit
def read(
    row,
    at,
    places,
    BEFORE: tl.constexpr,
    AFTER: tl.constexpr,
    GROUP: tl.constexpr,
    INNER: tl.constexpr,
):
    """Return a tuple of the words of groups, those *BEFORE* them and those *AFTER* them.

    Args:
        row: Where rows begin.
        at: The first words of groups, if all that is read lies in the row.
        places: Where their bytes are otherwise.
        BEFORE: How many words left of them: less than *GROUP*, or a multiple of it.
        AFTER: How many words right of them; the same.
        GROUP: How many words in each group: 1, 2, 4 or 6; 1 at the ends of rows.
        INNER: Whether they all lie in the row, which begins at a whole group.
    """
    words = ()
    if INNER:
        start = row.to(tl.pointer_type(tl.uint32)) + at
        own: tl.constexpr = GROUP if GROUP != 6 else 2
        left: tl.constexpr = min(BEFORE, own)
        right: tl.constexpr = min(AFTER, own)
        for place in tl.static_range(-BEFORE, 0, max(left, 1)):
            words = words + _loaded(start + place, left)
        for place in tl.static_range(0, GROUP, own):
            words = words + _loaded(start + place, own)
        for place in tl.static_range(0, AFTER, max(right, 1)):
            words = words + _loaded(start + (GROUP + place), right)
    else:
        for place in tl.static_range(BEFORE + 1 + AFTER):
            word = tl.load(row + places[4 * place]).to(tl.uint32)
            for byte in tl.static_range(1, 4):
                word |= tl.load(row + places[4 * place + byte]).to(tl.uint32) << (8 * byte)
            words = words + (word,)  # noqa: RUF005 - Triton knows no unpacking
    return words


@triton.jit
def write(row, at, words, is_there, length, INNER: tl.constexpr):
    """Write words that follow each other into rows, as far as these go and where *is_there*.

    Args:
        row: Where rows begin.
        at: Where in them to write, in words.
        words: A tuple of them.
        is_there: Whether there are such rows.
        length: How many bytes a row has.
        INNER: Whether all words lie in the row, which begins at a whole group.
    """
    if INNER:
        _stored(row.to(tl.pointer_type(tl.uint32)) + at, words, is_there)
    else:
        bytes_there = row.to(tl.pointer_type(tl.uint8))
        for place in tl.static_range(4 * len(words)):
            value = ((words[place // 4] >> (place % 4 * 8)) & 255).to(tl.uint8)
            inside = is_there & (4 * at + place < length)
            tl.store(bytes_there + 4 * at + place, value, mask=inside)


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
        result = stream[halves // 2]
    else:
        result = (stream[halves // 2] >> 16) | (stream[halves // 2 + 1] << 16)
    return result
