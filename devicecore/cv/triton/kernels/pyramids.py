"""Triton's kernel of images of half the size, blurred before."""

from __future__ import annotations

import triton
import triton.language as tl

from devicecore.cv.triton.kernels.words import bordered


@triton.jit
def _summed(row, at, places, inside, CHANNELS: tl.constexpr, INNER: tl.constexpr):
    """Return sums of five pixels of a row around those at *at*."""
    if INNER:
        middle = row + at
        outer = tl.load(middle - 2 * CHANNELS).to(tl.int32)
        outer += tl.load(middle + 2 * CHANNELS).to(tl.int32)
        near = tl.load(middle - CHANNELS).to(tl.int32)
        near += tl.load(middle + CHANNELS).to(tl.int32)
        own = tl.load(middle).to(tl.int32)
    else:
        outer = tl.load(row + places[0], mask=inside, other=0).to(tl.int32)
        outer += tl.load(row + places[4], mask=inside, other=0).to(tl.int32)
        near = tl.load(row + places[1], mask=inside, other=0).to(tl.int32)
        near += tl.load(row + places[3], mask=inside, other=0).to(tl.int32)
        own = tl.load(row + places[2], mask=inside, other=0).to(tl.int32)
    return 6 * own + 4 * near + outer


@triton.jit
def _strip(
    source,
    target,
    at,
    own,
    places,
    top,
    height,
    high,
    length,
    short,
    BORDER: tl.constexpr,
    CHANNELS: tl.constexpr,
    ROWS: tl.constexpr,
    INNER: tl.constexpr,
):
    inside = at < short
    rows = ()
    for step in tl.static_range(2 * ROWS + 3):
        row = source + bordered(2 * top + (step - 2), height, BORDER) * length
        total = _summed(row, own, places, inside, CHANNELS, INNER)
        rows = rows + (total,)  # noqa: RUF005 - Triton knows no unpacking
        if step >= 4 and step % 2 == 0:
            total = rows[step - 4] + 4 * (rows[step - 3] + rows[step - 1]) + rows[step]
            total += 6 * rows[step - 2]
            y = top + (step // 2 - 2)
            byte = ((total + 128) >> 8).to(tl.uint8)
            tl.store(target + y * short + at, byte, mask=inside & (y < high))


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
    length, short = width * CHANNELS, wide * CHANNELS
    source += image * height * length
    target += image * high * short
    first = tl.program_id(0) * BLOCK
    at = first + tl.arange(0, BLOCK)
    top = tl.program_id(1) * ROWS
    pixel = at // CHANNELS
    own = at + pixel * CHANNELS
    if (first >= 2 * CHANNELS) & (2 * (first + BLOCK) + 2 * CHANNELS <= length):
        _strip(
            source,
            target,
            at,
            own,
            (),
            top,
            height,
            high,
            length,
            short,
            BORDER,
            CHANNELS,
            ROWS,
            True,
        )
    else:
        places = ()
        for tap in tl.static_range(-2, 3):
            place = bordered(2 * pixel + tap, width, BORDER) * CHANNELS + at - pixel * CHANNELS
            places = places + (place,)  # noqa: RUF005 - Triton knows no unpacking
        _strip(
            source,
            target,
            at,
            own,
            places,
            top,
            height,
            high,
            length,
            short,
            BORDER,
            CHANNELS,
            ROWS,
            False,
        )
