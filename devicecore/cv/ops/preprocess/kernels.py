"""Triton kernels of `devicecore.cv.preprocess`: one that resizes, one that blurs.

Both compute in integers, as OpenCV does for bytes, and look the last value up in a table: whatever
float arithmetic normalising is, it was done once for each of the 256 bytes, on the host.
"""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def _two_pixels(source, at, last_word):
    """Return the eight bytes from byte *at* on, of which two aligned words are read."""
    words = source.to(tl.pointer_type(tl.uint64))
    word = at >> 3
    shift = ((at & 7) * 8).to(tl.uint64)
    low = tl.load(words + tl.minimum(word, last_word))
    high = tl.load(words + tl.minimum(word + 1, last_word))
    return (low >> shift) | ((high << 1) << (63 - shift))


@triton.jit
def _channel(pixels, place):
    return ((pixels >> (8 * place)) & 255).to(tl.int32)


@triton.jit
def place(
    source,  # bytes of images, each (rows, columns, channels), read in words of eight
    target,
    columns,  # int32 (width, 3): byte of the left pixel in a row or -1, and two weights
    rows,  # int32 (height, 4): upper row or -1, lower row, and two weights
    values,  # (channels, 256) of the target's type
    image_bytes,
    row_bytes,
    last_word,
    height,
    width,
    target_image,
    target_row,
    target_pixel,
    target_plane,
    border,
    SWAPPED: tl.constexpr,
    LOOKED_UP: tl.constexpr,
    CHANNELS: tl.constexpr,
    ROWS: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Resize with INTER_LINEAR's fixed-point arithmetic onto a canvas."""
    image = tl.program_id(2).to(tl.int64)
    x = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    y = tl.program_id(1) * ROWS + tl.arange(0, ROWS)
    in_x, in_y = x < width, y < height
    column = tl.load(columns + 3 * x, mask=in_x, other=-1)[None, :]
    left = tl.load(columns + 3 * x + 1, mask=in_x, other=0)[None, :]
    right = tl.load(columns + 3 * x + 2, mask=in_x, other=0)[None, :]
    top = tl.load(rows + 4 * y, mask=in_y, other=-1)[:, None]
    low = tl.load(rows + 4 * y + 1, mask=in_y, other=0)[:, None]
    upper = tl.load(rows + 4 * y + 2, mask=in_y, other=0)[:, None]
    lower = tl.load(rows + 4 * y + 3, mask=in_y, other=0)[:, None]
    there = (column >= 0) & (top >= 0)
    start = image * image_bytes + tl.maximum(column, 0)
    above = _two_pixels(source, start + tl.maximum(top, 0).to(tl.int64) * row_bytes, last_word)
    below = _two_pixels(source, start + tl.maximum(low, 0).to(tl.int64) * row_bytes, last_word)
    to = target + image * target_image + y[:, None] * target_row + x[None, :] * target_pixel
    stored = in_x[None, :] & in_y[:, None]
    for channel in tl.static_range(CHANNELS):
        first = _channel(above, channel) * left + _channel(above, channel + CHANNELS) * right
        second = _channel(below, channel) * left + _channel(below, channel + CHANNELS) * right
        value = ((upper * (first >> 4)) >> 16) + ((lower * (second >> 4)) >> 16)
        byte = tl.where(there, (value + 2) >> 2, border)
        plane = CHANNELS - 1 - channel if SWAPPED else channel
        if LOOKED_UP:
            found = tl.load(values + plane * 256 + byte)
            tl.store(to + plane * target_plane, found, mask=stored)
        else:
            tl.store(to + plane * target_plane, byte.to(tl.uint8), mask=stored)


@triton.jit
def _blurred_row(
    plane, y, x, inside, height, width, weights, REACH: tl.constexpr, STEP: tl.constexpr
):
    """Return one row, blurred along itself, with BORDER_REFLECT_101."""
    y = tl.abs(tl.minimum(y, height - 1 + REACH))  # a strip may end below the image
    y = tl.where(y >= height, 2 * height - 2 - y, y)
    total = tl.zeros_like(x)
    pixel = x // STEP
    for tap in tl.static_range(2 * REACH + 1):
        column = tl.abs(pixel + (tap - REACH))
        column = tl.where(column >= width, 2 * width - 2 - column, column)
        place = (y * width + column) * STEP + (x - pixel * STEP)
        byte = tl.load(plane + place, mask=inside, other=0).to(tl.int32)
        total += byte * tl.load(weights + tap)
    return total


@triton.jit
def blur(
    source,  # bytes (images, CHANNELS, height, width, STEP)
    target,
    weights,  # int32, two kernels of 2 * REACH + 1 taps, along rows and along columns
    values,  # (channels, 256) of the target's type
    height,
    width,
    target_image,
    target_row,
    target_pixel,
    target_plane,
    REACH: tl.constexpr,
    CHANNELS: tl.constexpr,
    STEP: tl.constexpr,
    LOOKED_UP: tl.constexpr,
    ROWS: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Blur with GaussianBlur's 8-bit weights, in strips of rows, and look the bytes up.

    A row has STEP values for each pixel; those of the target lie as far apart as its pixels.
    """
    image = tl.program_id(2).to(tl.int64) // CHANNELS
    channel = tl.program_id(2) % CHANNELS
    x = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = x < width * STEP
    plane = source + tl.program_id(2).to(tl.int64) * (height * width * STEP)
    to = target + image * target_image + x * target_pixel + channel * target_plane
    first = tl.program_id(1) * ROWS
    down = weights + 2 * REACH + 1
    # The last rows, blurred along themselves; only as many as there are taps are used.
    a = tl.zeros_like(x)
    b = tl.zeros_like(x)
    c = tl.zeros_like(x)
    d = tl.zeros_like(x)
    e = tl.zeros_like(x)
    f = tl.zeros_like(x)
    for step in range(ROWS + 2 * REACH):
        y = first + step - REACH
        row = _blurred_row(plane, y, x, inside, height, width, weights, REACH, STEP)
        total = row * tl.load(down + 2 * REACH)
        total += f * tl.load(down + 2 * REACH - 1) + e * tl.load(down + 2 * REACH - 2)
        if REACH >= 2:
            total += d * tl.load(down + 1 + 2 * (REACH - 2))
            total += c * tl.load(down + 2 * (REACH - 2))
        if REACH >= 3:
            total += b * tl.load(down + 1) + a * tl.load(down)
        # One by one: Triton 3.6 does not carry what a tuple of these assigns through the loop.
        a = b
        b = c
        c = d
        d = e
        e = f
        f = row
        out = y - REACH
        byte = (total + (1 << 15)) >> 16
        found = tl.load(values + channel * 256 + byte) if LOOKED_UP else byte.to(tl.uint8)
        stored = inside & (step >= 2 * REACH) & (out < height)
        tl.store(to + out * target_row, found, mask=stored)
