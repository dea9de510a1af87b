"""Triton's kernels of wide Gaussian blurs: one along rows, to 16 bits, and one along columns."""

from __future__ import annotations

import triton
import triton.language as tl

from devicecore.cv.triton.kernels.sums import along, split
from devicecore.cv.triton.kernels.words import (
    PART,
    bordered,
    end_bytes,
    end_place,
    inner_place,
    read,
    write_pairs,
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
    taps,
    TAPS: tl.constexpr,
    CHANNELS: tl.constexpr,
    BEFORE: tl.constexpr,
    AFTER: tl.constexpr,
    ROWS: tl.constexpr,
    INNER: tl.constexpr,
):
    for step in tl.static_range(ROWS):
        y = tl.minimum(top + step, height - 1)
        even, odd = split(read(source + y * length, at, places, BEFORE, AFTER, INNER))
        low = along(even, odd, taps, 0, 0, TAPS, TAPS // 2, CHANNELS, BEFORE)
        high = along(even, odd, taps, 1, 0, TAPS, TAPS // 2, CHANNELS, BEFORE)
        write_pairs(target + y * length, at, low, high, top + step < height, length, INNER)


@triton.jit(do_not_specialize=["height", "length", "words", "inner", "ends"])
def blur_rows(
    source,  # bytes of images, each (height, length)
    target,  # 16 bits for each of them
    height,
    length,
    words,
    inner,
    ends,
    weights,  # int32, 256 in all
    TAPS: tl.constexpr,
    BORDER: tl.constexpr,
    CHANNELS: tl.constexpr,
    BEFORE: tl.constexpr,
    AFTER: tl.constexpr,
    ROWS: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Sum the pixels around each one of a row by weight."""
    image = tl.program_id(2).to(tl.int64) * height * length
    source += image
    target += image
    taps = ()
    for tap in tl.static_range(TAPS):
        taps = taps + (tl.load(weights + tap).to(tl.uint32),)  # noqa: RUF005 - Triton's language
    if tl.program_id(0) < inner:
        at, top = inner_place(words, height, BEFORE, AFTER, ROWS, BLOCK)
        for part in range(ROWS // PART):
            _strip(
                source,
                target,
                at,
                (),
                top + part * PART,
                height,
                length,
                taps,
                TAPS,
                CHANNELS,
                BEFORE,
                AFTER,
                PART,
                True,
            )
    else:
        at, tops = end_place(inner, words, ends, BEFORE, ROWS, BLOCK)
        places = end_bytes(at, length, BEFORE, AFTER, CHANNELS, BORDER)
        for row in range(ROWS):
            _strip(
                source,
                target,
                at,
                places,
                tops + row,
                height,
                length,
                taps,
                TAPS,
                CHANNELS,
                BEFORE,
                AFTER,
                1,
                False,
            )


@triton.jit
def blur_columns(
    source,  # 16 bits for each byte of images, each (height, length)
    target,
    height,
    length,
    weights,  # float32, one in all
    TAPS: tl.constexpr,
    BORDER: tl.constexpr,
    ROWS: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Sum the values around each one of a column by weight, and round them to bytes.

    All sums are multiples of 2**-16 below 256, which float32 has.
    """
    image = tl.program_id(2).to(tl.int64) * height * length
    x = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    top = tl.program_id(1) * ROWS
    taps = ()
    for tap in tl.static_range(TAPS):
        taps = taps + (tl.load(weights + tap),)  # noqa: RUF005 - Triton knows no unpacking
    rows = ()
    for step in tl.static_range(ROWS + TAPS - 1):
        y = bordered(top + (step - TAPS // 2), height, BORDER)
        own = tl.load(source + image + y * length + x, mask=x < length, other=0)
        rows = rows + ((own.to(tl.int32) & 0xFFFF).to(tl.float32),)  # noqa: RUF005 - the same
        if step >= TAPS - 1:
            total = tl.full((BLOCK,), 0.5, tl.float32)
            for tap in tl.static_range(TAPS):
                total = tl.fma(rows[step - TAPS + 1 + tap], taps[tap], total)
            y = top + (step - TAPS + 1)
            byte = total.to(tl.int32).to(tl.uint8)
            tl.store(target + image + y * length + x, byte, mask=(x < length) & (y < height))
