"""Triton's kernel of warps: places in float32 with fused sums, and the four pixels around each.

It is compiled without the fusing that Triton does by itself: what OpenCV fuses is fused by name.
"""

from __future__ import annotations

import triton
import triton.language as tl

# Added to a small float32 and taken off again, it leaves the whole number next to it, half to even.
_ROUNDING = tl.constexpr(12582912.0)
_UNCOUNTABLE = tl.constexpr(2147483648.0)


@triton.jit
def _place(x, y, a, b, c, blocks):
    """Return one coordinate; the columns after the last whole block add in another order."""
    product = y * b
    return tl.where(x < blocks, tl.fma(x, a, product + c), tl.fma(x, a, product) + c)


@triton.jit
def _near(place, length):
    """Return a place that is a little outside where it is far outside, or cannot be counted."""
    place = tl.where(tl.abs(place) < _UNCOUNTABLE, place, -2.0)
    return tl.minimum(tl.maximum(place, -2.0), length + 1.0)


@triton.jit
def _pixel(
    image, x, y, width, height, value, stored, CHANNELS: tl.constexpr, REPEATS: tl.constexpr
):
    """Return one channel of the pixels at whole places, as float32."""
    column = tl.minimum(tl.maximum(x, 0), width - 1)
    row = tl.minimum(tl.maximum(y, 0), height - 1)
    found = tl.load(image + (row * width + column) * CHANNELS, mask=stored, other=0)
    found = found.to(tl.float32)
    if REPEATS:
        return found
    return tl.where((column == x) & (row == y), found, value)


@triton.jit
def warp(
    source,  # bytes (images, source height, source width, CHANNELS)
    target,
    a,
    b,
    c,
    d,
    e,
    f,
    g,
    h,
    i,
    source_height,
    source_width,
    height,
    width,
    blocks,
    first,
    second,
    third,
    fourth,
    PERSPECTIVE: tl.constexpr,
    NEAREST: tl.constexpr,
    REPEATS: tl.constexpr,
    CHANNELS: tl.constexpr,
    ROWS: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Read a source at the places that a matrix gives."""
    image = tl.program_id(2).to(tl.int64)
    column = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)[None, :]
    row = tl.program_id(1) * ROWS + tl.arange(0, ROWS)[:, None]
    stored = (column < width) & (row < height)
    across, down = column.to(tl.float32), row.to(tl.float32)
    x = _place(across, down, a, b, c, blocks)
    y = _place(across, down, d, e, f, blocks)
    if PERSPECTIVE:
        below = _place(across, down, g, h, i, blocks)
        x = tl.div_rn(x, below)
        y = tl.div_rn(y, below)
    x = _near(x, source_width)
    y = _near(y, source_height)
    own = source + image * source_height * source_width * CHANNELS
    to = target + (image * height * width + row * width + column) * CHANNELS
    if NEAREST:
        left = ((x + _ROUNDING) - _ROUNDING).to(tl.int32)
        top = ((y + _ROUNDING) - _ROUNDING).to(tl.int32)
    else:
        left = tl.floor(x)
        top = tl.floor(y)
        x = x - left
        y = y - top
        left = left.to(tl.int32)
        top = top.to(tl.int32)
    for channel in tl.static_range(CHANNELS):
        value = first if channel == 0 else second if channel == 1 else third
        if channel == 3:
            value = fourth
        at = own + channel
        wide, high = source_width, source_height
        found = _pixel(at, left, top, wide, high, value, stored, CHANNELS, REPEATS)
        if not NEAREST:
            beside = _pixel(at, left + 1, top, wide, high, value, stored, CHANNELS, REPEATS)
            under = _pixel(at, left, top + 1, wide, high, value, stored, CHANNELS, REPEATS)
            last = _pixel(at, left + 1, top + 1, wide, high, value, stored, CHANNELS, REPEATS)
            upper = tl.fma(x, beside - found, found)
            lower = tl.fma(x, last - under, under)
            found = tl.fma(y, lower - upper, upper)
            found = (found + _ROUNDING) - _ROUNDING
        tl.store(to + channel, found.to(tl.uint8), mask=stored)
