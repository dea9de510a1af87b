"""Triton's kernel that makes columns of rows, tile by tile."""

from __future__ import annotations

import triton
import triton.language as tl


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
