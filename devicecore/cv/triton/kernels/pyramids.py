"""Triton's kernel of images of half the size, blurred before."""

from __future__ import annotations

import triton
import triton.language as tl

from devicecore.cv.triton.kernels.words import bordered


@triton.jit
def halve(
    source,  # bytes of images, each (height, width, CHANNELS)
    target,
    height,
    width,
    high,
    wide,
    BORDER: tl.constexpr,
    CHANNELS: tl.constexpr,
    ROWS: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Sum five pixels of rows, and five of these sums, by 1, 4, 6, 4 and 1, at even places."""
    image = tl.program_id(2).to(tl.int64)
    source += image * height * width * CHANNELS
    target += image * high * wide * CHANNELS
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < wide * CHANNELS
    pixel = at // CHANNELS
    places = ()
    for tap in tl.static_range(-2, 3):
        own = bordered(2 * pixel + tap, width, BORDER) * CHANNELS + at - pixel * CHANNELS
        places = places + (own,)  # noqa: RUF005 - Triton knows no unpacking
    top = tl.program_id(1) * ROWS
    rows = ()
    for step in tl.static_range(2 * ROWS + 3):
        row = source + bordered(2 * top + (step - 2), height, BORDER) * width * CHANNELS
        total = tl.load(row + places[2], mask=inside, other=0).to(tl.int32) * 6
        near = tl.load(row + places[1], mask=inside, other=0).to(tl.int32)
        near += tl.load(row + places[3], mask=inside, other=0).to(tl.int32)
        total += tl.load(row + places[0], mask=inside, other=0).to(tl.int32) + 4 * near
        total += tl.load(row + places[4], mask=inside, other=0).to(tl.int32)
        rows = rows + (total,)  # noqa: RUF005 - the same
        if step >= 4 and step % 2 == 0:
            total = rows[step - 4] + 4 * (rows[step - 3] + rows[step - 1]) + rows[step]
            total += 6 * rows[step - 2]
            y = top + (step // 2 - 2)
            byte = ((total + 128) >> 8).to(tl.uint8)
            tl.store(target + y * wide * CHANNELS + at, byte, mask=inside & (y < high))
