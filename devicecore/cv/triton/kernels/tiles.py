"""Pixels between those of an image, from a tile of it that a program reads first.

Places that a warp of threads has are in many rows of a source that is turned; a card reads these
one after the other. In the memory that threads share, such look-ups cost no more than others.
"""

from __future__ import annotations

import triton
import triton.language as tl

from devicecore.cv.triton.kernels.pixels import ROUNDING, floor_placed, moved_down
from devicecore.cv.triton.kernels.sampling import between


@triton.jit
def tile_of(x, y, pitch, WORDS: tl.constexpr, LINES: tl.constexpr, NATIVE: tl.constexpr):
    """Return which tile of *LINES* rows has the pixels of three channels around places inside.

    Returns:
        Its first 16 bytes in an image and how many of its rows are needed, none where it is too
        small; of each place the word in the tile, and the byte modulo 4.
    """
    column = (floor_placed(x, NATIVE) - ROUNDING).to(tl.int32)
    row = (floor_placed(y, NATIVE) - ROUNDING).to(tl.int32)
    top, left = tl.min(row, 0), tl.min(column, 0) * 3 // 16
    lines = tl.max(row, 0) - top + 2
    # Three words are read of each pair of pixels.
    is_narrow = tl.max(column, 0) * 3 + 12 - left * 16 <= 4 * WORDS
    lines = tl.where(is_narrow & (lines <= LINES), lines, 0)
    over = column * 3 - left * 16
    return top * (pitch // 16) + left, lines, (row - top) * WORDS + (over >> 2), over


@triton.jit
def tile_pixels(
    source,  # int32, at the first word of an image
    begin,  # what `tile_of` returns
    lines,
    word,
    over,
    across,  # what `inner_places` returns
    down,
    pitch,  # bytes of a row, a multiple of 16, at which images begin
    source_bytes,
    WORDS: tl.constexpr,
    LINES: tl.constexpr,
    NATIVE: tl.constexpr,
):
    """Return what `inner_pixels` does, of three channels, from a tile that all threads read first.

    Threads read 16 bytes at once, which lie beside one another; what each looks up in the tile
    costs no more for places that are far from each other.
    """
    each: tl.constexpr = WORDS // 4
    four = tl.arange(0, LINES * each)
    line = four // each
    at = begin + line * (pitch // 16) + four % each
    there = (line < lines) & (at < source_bytes // 16)
    pointers = source + (at * 4)[:, None] + tl.arange(0, 4)[None, :]
    tile = tl.load(tl.multiple_of(pointers, (1, 16)), mask=there[:, None], other=0)
    # The last two are not used; their number is a power of two.
    even = tl.join(tl.join(word, word + WORDS), tl.join(word + 2, word))
    odd = tl.join(tl.join(word + 1, word + (WORDS + 1)), tl.join(word + (WORDS + 2), word))
    places = tl.reshape(tl.join(even, odd), (word.shape[0] * 8,))
    found = tl.gather(tl.reshape(tile, (LINES * WORDS,)), places, 0)
    found = tl.reshape(found, (word.shape[0], 2, 2, 2))
    even, odd = tl.split(found)
    first, third = tl.split(even)
    second, last = tl.split(odd)
    upper_first, lower_first = tl.split(first)
    upper_third, _ = tl.split(third)
    upper_second, lower_second = tl.split(second)
    lower_third, _ = tl.split(last)
    upper = (
        moved_down(upper_first, upper_second, over, NATIVE),
        moved_down(upper_second, upper_third, over, NATIVE),
    )
    lower = (
        moved_down(lower_first, lower_second, over, NATIVE),
        moved_down(lower_second, lower_third, over, NATIVE),
    )
    return between(upper, lower, across, down, 3, NATIVE)
