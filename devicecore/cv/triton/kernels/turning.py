"""Triton's kernel that makes columns of rows, tile by tile."""

from __future__ import annotations

import triton
import triton.language as tl

from devicecore.cv.triton.kernels.pixels import four_of, group_of, load_four, pixels_of


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
    TILE: tl.constexpr,
):
    """Copy pixels as `turn` does, read and written in groups of four, which are whole words."""
    side: tl.constexpr = TILE // 4
    begin = tl.program_id(2).to(tl.int64) * (height * width * CHANNELS)
    left = tl.program_id(0) * side
    top = tl.program_id(1) * TILE
    # Of what lies beside one another in a tile, threads that lie beside one another have a group.
    lane = tl.arange(0, TILE * side)
    across, down = left + lane % side, top + lane // side
    inside = (across * 4 < width) & (down < height)
    words = (source + begin).to(tl.pointer_type(tl.int32))
    group = down * (width // 4) + across
    first, second, third, last = pixels_of(
        load_four(words, group, inside, CHANNELS), CHANNELS, NATIVE
    )
    pixels = tl.join(tl.join(first, third), tl.join(second, last))
    pixels = tl.permute(tl.reshape(pixels, (side, 2, 2, TILE)), (3, 0, 1, 2))
    first, second, third, last = four_of(tl.reshape(pixels, (TILE * side, 2, 2)))
    row, column = left * 4 + lane // side, top // 4 + lane % side
    stored = (row < width) & (column * 4 < height)
    if FROM_RIGHT:
        row = width - 1 - row
    if FROM_BELOW:
        column = height // 4 - 1 - column
        turned = group_of((last, third, second, first), CHANNELS, NATIVE)
    else:
        turned = group_of((first, second, third, last), CHANNELS, NATIVE)
    words = (target + begin).to(tl.pointer_type(tl.int32))
    group = row * (height // 4) + column
    for place in tl.static_range(CHANNELS):
        tl.store(words + group * CHANNELS + place, turned[place], mask=stored)
