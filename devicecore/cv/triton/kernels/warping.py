"""Triton's kernels of warps and of remaps: places by a matrix or from maps, and the pixels around.

They are compiled without the fusing that Triton does by itself: what OpenCV fuses is fused by name.
"""

from __future__ import annotations

import triton
import triton.language as tl

from devicecore.cv.triton.kernels.sampling import INNER, store_sample


@triton.jit
def _place(x, y, a, b, c, blocks):
    """Return one coordinate; the columns after the last whole block add in another order."""
    product = y * b
    return tl.where(x < blocks, tl.fma(x, a, product + c), tl.fma(x, a, product) + c)


@triton.jit
def _range(x, y, right, bottom, a, b, c):
    """Return the least and the most of a coordinate in a rectangle of pixels, about."""
    low = tl.minimum(x * a, right * a) + tl.minimum(y * b, bottom * b) + c
    high = tl.maximum(x * a, right * a) + tl.maximum(y * b, bottom * b) + c
    return low, high


@triton.jit
def _is_inner(low, high, least, most, length):
    """Return whether quotients lie between the pixels of an axis, a pixel away from its ends."""
    return (low >= most) & (high <= (length - 3) * least)


@triton.jit(do_not_specialize=["source_height", "source_width", "height", "width", "value"])
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
    blocks,
    source_height,
    source_width,
    height,
    width,
    value,
    PERSPECTIVE: tl.constexpr,
    NEAREST: tl.constexpr,
    BORDER: tl.constexpr,
    PAIRS: tl.constexpr,
    CHANNELS: tl.constexpr,
    ROWS: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Read a source at the places that a matrix gives."""
    image = tl.program_id(2).to(tl.int64)
    # A warp has 16 x 2 pixels: fewer rows of a source that is turned than 32 x 1 would have.
    lane = tl.arange(0, ROWS * BLOCK)
    left = tl.program_id(0) * BLOCK
    top = tl.program_id(1) * ROWS
    column = left + lane // 32 % (BLOCK // 16) * 16 + lane % 16
    row = top + lane // (2 * BLOCK) * 2 + lane // 16 % 2
    stored = (column < width) & (row < height)
    across, down = column.to(tl.float32), row.to(tl.float32)
    x = _place(across, down, a, b, c, blocks)
    y = _place(across, down, d, e, f, blocks)
    # Of the corners, whose places are about those of their pixels, all others lie inside.
    right = tl.minimum(left + BLOCK, width).to(tl.float32) - 1.0
    bottom = tl.minimum(top + ROWS, height).to(tl.float32) - 1.0
    first, upper = left.to(tl.float32), top.to(tl.float32)
    low_x, high_x = _range(first, upper, right, bottom, a, b, c)
    low_y, high_y = _range(first, upper, right, bottom, d, e, f)
    least, most = 1.0, 1.0
    if PERSPECTIVE:
        below = _place(across, down, g, h, i, blocks)
        x = tl.div_rn(x, below)
        y = tl.div_rn(y, below)
        least, most = _range(first, upper, right, bottom, g, h, i)
    is_inner = _is_inner(low_x, high_x, least, most, source_width)
    is_inner &= _is_inner(low_y, high_y, least, most, source_height) & (least > 0.0)
    begin = image * source_height * source_width * CHANNELS
    to = target + image * height * width * CHANNELS + (row * width + column) * CHANNELS
    high, wide = source_height, source_width
    if is_inner:
        store_sample(
            source, to, begin, x, y, wide, high, value, stored, NEAREST, INNER, True, CHANNELS
        )
    else:
        store_sample(
            source, to, begin, x, y, wide, high, value, stored, NEAREST, BORDER, PAIRS, CHANNELS
        )


@triton.jit(
    do_not_specialize=["source_height", "source_width", "pixels", "width", "value", "map_step"]
)
def remap(
    source,  # bytes (images, source height, source width, CHANNELS)
    columns,  # float32, with STEP numbers for each pixel of the result
    rows,
    target,
    source_height,
    source_width,
    pixels,
    width,
    value,
    map_step,  # pixels from one map to the next one; 0 for one that all images share
    STEP: tl.constexpr,
    RELATIVE: tl.constexpr,
    NEAREST: tl.constexpr,
    BORDER: tl.constexpr,
    PAIRS: tl.constexpr,
    CHANNELS: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Read a source at the places that maps give; with one map of both, rows are a number on."""
    image = tl.program_id(1).to(tl.int64)
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    stored = at < pixels
    own = image * map_step * STEP
    x = tl.load(columns + own + at * STEP, mask=stored, other=0.0)
    y = tl.load(rows + own + at * STEP + (STEP - 1), mask=stored, other=0.0)
    if RELATIVE:
        row = at // width
        x += (at - row * width).to(tl.float32)
        y += row.to(tl.float32)
    begin = image * source_height * source_width * CHANNELS
    to = target + image * pixels * CHANNELS + at * CHANNELS
    store_sample(
        source,
        to,
        begin,
        x,
        y,
        source_width,
        source_height,
        value,
        stored,
        NEAREST,
        BORDER,
        PAIRS,
        CHANNELS,
    )
