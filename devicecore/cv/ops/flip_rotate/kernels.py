"""Triton kernels that transpose images tile by tile."""

from __future__ import annotations

import triton
import triton.language as tl

from devicecore.cv.triton_support.kernels.pixels import four_of, group_of, pixels_of


@triton.jit(do_not_specialize=["height", "width"])
def turn(
    source,  # bytes (images, height, width, CHANNELS)
    target,  # bytes (images, width, height, CHANNELS)
    height,
    width,
    FROM_RIGHT: tl.constexpr,  # whether the last column becomes the first row
    FROM_BELOW: tl.constexpr,  # whether the last row becomes the first column
    CHANNELS: tl.constexpr,
    TILE: tl.constexpr,
):
    """Copy pixels to where rows and columns are exchanged; images are smaller than 2**31 bytes."""
    begin = tl.program_id(2).to(tl.int64) * (height * width * CHANNELS)
    left = tl.program_id(0) * TILE
    top = tl.program_id(1) * TILE
    # Threads that lie beside one another have the first axis, as Triton orders them.
    across = left + tl.arange(0, TILE)[:, None]
    down = top + tl.arange(0, TILE)[None, :]
    inside = (across < width) & (down < height)
    at = source + begin + (down * width + across) * CHANNELS
    pixel = tl.load(at, mask=inside, other=0).to(tl.int32)
    for channel in tl.static_range(1, CHANNELS):
        value = tl.load(at + channel, mask=inside, other=0).to(tl.int32)
        pixel |= value << (8 * channel)
    turned = tl.trans(pixel)
    row = left + tl.arange(0, TILE)[None, :]
    column = top + tl.arange(0, TILE)[:, None]
    stored = (row < width) & (column < height)
    if FROM_RIGHT:
        row = width - 1 - row
    if FROM_BELOW:
        column = height - 1 - column
    to = target + begin + (row * height + column) * CHANNELS
    for channel in tl.static_range(CHANNELS):
        value = (turned >> (8 * channel)) & 255
        tl.store(to + channel, value.to(tl.uint8), mask=stored)


@triton.jit
def _words(row, CHANNELS: tl.constexpr):
    """Return a tuple of the words (groups) of rows, of one (groups, words and padding)."""
    if CHANNELS == 1:
        words = (tl.reshape(row, (row.shape[0],)),)
    elif CHANNELS == 2:
        words = tl.split(row)
    else:
        first, second, third, last = four_of(tl.reshape(row, (row.shape[0], 2, 2)))
        words = (first, second, third) if CHANNELS == 3 else (first, second, third, last)
    return words


@triton.jit(do_not_specialize=["height", "width"])
def turn_groups(
    source,  # bytes (images, height, width, CHANNELS); sides are multiples of four
    target,  # bytes (images, width, height, CHANNELS)
    height,
    width,
    FROM_RIGHT: tl.constexpr,  # whether the last column becomes the first row
    FROM_BELOW: tl.constexpr,  # whether the last row becomes the first column
    CHANNELS: tl.constexpr,
    NATIVE: tl.constexpr,
    TALL: tl.constexpr,  # pixels of a column of a tile
    WIDE: tl.constexpr,
):
    """Copy pixels as `turn` does, read and written in groups of four, which are whole words.

    Threads that lie beside one another read words that do, then exchange them: each has four rows
    of a group, which are a group of each of four columns.
    """
    high: tl.constexpr = TALL // 4
    wide: tl.constexpr = WIDE // 4
    # Of three words, the fourth is left out.
    padded: tl.constexpr = 4 if CHANNELS == 3 else CHANNELS
    begin = tl.program_id(2).to(tl.int64) * (height * width * CHANNELS)
    left = tl.program_id(0) * wide
    top = tl.program_id(1) * high
    lane = tl.arange(0, TALL * wide * padded)
    word = lane % padded
    across, down = left + lane // padded % wide, top * 4 + lane // (wide * padded)
    inside = (across * 4 < width) & (down < height) & (word < CHANNELS)
    words = (source + begin).to(tl.pointer_type(tl.int32))
    found = tl.load(
        words + ((down * (width // 4) + across) * CHANNELS + word), mask=inside, other=0
    )
    found = tl.permute(tl.reshape(found, (high, 4, wide, padded)), (2, 0, 3, 1))
    rows = four_of(tl.reshape(found, (wide * high, padded, 2, 2)))
    pixels = ()
    for row in tl.static_range(4):
        four = pixels_of(_words(rows[row], CHANNELS), CHANNELS, NATIVE)
        pixels = pixels + (four,)  # noqa: RUF005 - Triton knows no unpacking
    lane = tl.arange(0, wide * high)
    across, down = (left + lane // high) * 4, top + lane % high
    stored = (across < width) & (down * 4 < height)
    if FROM_BELOW:
        down = height // 4 - 1 - down
    words = (target + begin).to(tl.pointer_type(tl.int32))
    for column in tl.static_range(4):
        four = (pixels[0][column], pixels[1][column], pixels[2][column], pixels[3][column])
        if FROM_BELOW:
            four = (four[3], four[2], four[1], four[0])
        turned = group_of(four, CHANNELS, NATIVE)
        row = across + column
        if FROM_RIGHT:
            row = width - 1 - row
        group = row * (height // 4) + down
        for place in tl.static_range(CHANNELS):
            tl.store(words + (group * CHANNELS + place), turned[place], mask=stored)
