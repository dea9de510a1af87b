"""Triton kernels that resize images of bytes: between two pixels, by cells, by any taps.

All are told where to read, and with which weights, by tables for columns and for rows.
"""

from __future__ import annotations

import triton
import triton.language as tl

from devicecore.cv.triton_support.kernels.pixels import (
    as_float,
    byte,
    cut,
    load_pair,
    saturated,
    store_four,
)

_HALVES = tl.constexpr(0x00FF00FF)
# Added to a small float64 and taken off again, it leaves the nearest whole number, half to even.
_ROUNDING = tl.constexpr(6755399441055744.0)


@triton.jit(do_not_specialize=["source_bytes", "width"])
def linear(
    source,  # bytes (images, source rows, source columns, CHANNELS)
    target,
    columns,  # int32 (width, 3): byte of the left one of two pixels in a row, and two weights
    rows,  # int32 (height, 4): bytes where two rows begin, and two weights
    source_bytes,
    width,
    CHANNELS: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Resize with INTER_LINEAR's weights in 11 bits."""
    image = tl.program_id(2).to(tl.int64)
    y = tl.program_id(1)
    x = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = x < width
    column = tl.load(columns + 3 * x, mask=inside, other=0)
    left = tl.load(columns + 3 * x + 1, mask=inside, other=0)
    right = tl.load(columns + 3 * x + 2, mask=inside, other=0)
    begin = image * source_bytes
    words = source.to(tl.pointer_type(tl.int32)) + (begin >> 2)
    column += (begin & 3).to(tl.int32)
    above = load_pair(words, tl.load(rows + 4 * y) + column, inside, CHANNELS)
    below = load_pair(words, tl.load(rows + 4 * y + 1) + column, inside, CHANNELS)
    upper = tl.load(rows + 4 * y + 2)
    lower = tl.load(rows + 4 * y + 3)
    to = target + (image * tl.num_programs(1) + y) * (width * CHANNELS) + x * CHANNELS
    for channel in tl.static_range(CHANNELS):
        first = byte(above, channel) * left + byte(above, channel + CHANNELS) * right
        second = byte(below, channel) * left + byte(below, channel + CHANNELS) * right
        total = ((upper * (first >> 4)) >> 16) + ((lower * (second >> 4)) >> 16)
        tl.store(to + channel, ((total + 2) >> 2).to(tl.uint8), mask=inside)


@triton.jit
def _half(even, odd, PLACE: tl.constexpr):
    """Return the sum of what is at one byte of several words."""
    sums = even[PLACE // 4] if PLACE % 2 == 0 else odd[PLACE // 4]
    return (sums >> (16 * (PLACE % 4 // 2))) & 0xFFFF


@triton.jit(do_not_specialize=["groups", "share"])
def cells(
    source,  # bytes (images, DOWN * height, 4 * ACROSS * groups, CHANNELS)
    target,
    groups,
    share,  # one by the pixels of a cell
    ACROSS: tl.constexpr,
    DOWN: tl.constexpr,
    CHANNELS: tl.constexpr,
    ROUNDED_UP: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Take the means of cells of whole pixels: columns are summed first, two bytes in a word."""
    image = tl.program_id(2).to(tl.int64)
    line = image * tl.num_programs(1) + tl.program_id(1)
    group = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = group < groups
    length = groups * (ACROSS * CHANNELS)
    at = source.to(tl.pointer_type(tl.int32)) + line * (DOWN * length) + group * ACROSS * CHANNELS
    even = ()
    odd = ()
    for place in tl.static_range(ACROSS * CHANNELS):
        first = tl.zeros((BLOCK,), tl.int32)
        second = tl.zeros((BLOCK,), tl.int32)
        for row in tl.static_range(DOWN):
            word = tl.load(at + row * length + place, mask=inside, other=0)
            first += word & _HALVES
            second += (word >> 8) & _HALVES
        even = even + (first,)  # noqa: RUF005 - no unpacking
        odd = odd + (second,)  # noqa: RUF005 - no unpacking
    values = ()
    for pixel in tl.static_range(4):
        for channel in tl.static_range(CHANNELS):
            total = _half(even, odd, pixel * ACROSS * CHANNELS + channel)
            for column in tl.static_range(1, ACROSS):
                total += _half(even, odd, (pixel * ACROSS + column) * CHANNELS + channel)
            mean = saturated(as_float(total) * share)
            value = (total + 2) >> 2 if ROUNDED_UP else mean
            values = values + (value,)  # noqa: RUF005 - no unpacking
    to = target.to(tl.pointer_type(tl.int32)) + line * (groups * CHANNELS)
    store_four(to, group, inside, values, CHANNELS)


@triton.jit(do_not_specialize=["source_bytes", "width"])
def taps(
    source,  # bytes (images, source rows, source columns, CHANNELS)
    target,
    columns,  # int32 (COLUMNS, width): bytes of pixels in a row
    across,  # their weights
    rows,  # int32 (height, ROWS): bytes where rows begin
    down,  # their weights
    source_bytes,
    width,
    COLUMNS: tl.constexpr,
    ROWS: tl.constexpr,
    BITS: tl.constexpr,  # what weights that are integers have together; 0 for floats
    CHANNELS: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Sum pixels by weight, first along rows; nothing is fused."""
    image = tl.program_id(2).to(tl.int64)
    y = tl.program_id(1)
    unit = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = unit < width * CHANNELS
    x = unit // CHANNELS
    own = source + image * source_bytes + (unit - x * CHANNELS)
    total = tl.zeros((BLOCK,), down.dtype.element_ty)
    for step in range(ROWS):
        row = own + tl.load(rows + y * ROWS + step)
        sums = tl.zeros((BLOCK,), down.dtype.element_ty)
        for tap in range(COLUMNS):
            place = tl.load(columns + tap * width + x, mask=inside, other=0)
            weight = tl.load(across + tap * width + x, mask=inside, other=0)
            value = tl.load(row + place, mask=inside, other=0).to(tl.int32)
            if BITS == 0:
                value = as_float(value).to(down.dtype.element_ty)
            sums += value * weight
        total += sums * tl.load(down + y * ROWS + step)
    if BITS > 0:
        found = cut((total + (1 << (BITS - 1))) >> BITS)
    elif down.dtype.element_ty == tl.float64:
        total = tl.minimum(tl.maximum(total, 0.0), 255.0)
        found = ((total + _ROUNDING) - _ROUNDING).to(tl.int32)
    else:
        found = saturated(total)
    to = target + (image * tl.num_programs(1) + y) * (width * CHANNELS) + unit
    tl.store(to, found.to(tl.uint8), mask=inside)
