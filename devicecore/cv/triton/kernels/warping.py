"""Triton's kernels of warps and of remaps: places by a matrix or from maps, and the pixels around.

They are compiled without the fusing that Triton does by itself: what OpenCV fuses is fused by name.
"""

from __future__ import annotations

import triton
import triton.language as tl

from devicecore.cv.triton.kernels.sampling import store_sample


@triton.jit
def _place(x, y, a, b, c, blocks):
    """Return one coordinate; the columns after the last whole block add in another order."""
    product = y * b
    return tl.where(x < blocks, tl.fma(x, a, product + c), tl.fma(x, a, product) + c)


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
    lane = tl.arange(0, ROWS * BLOCK)
    column = tl.program_id(0) * BLOCK + lane % BLOCK
    row = tl.program_id(1) * ROWS + lane // BLOCK
    stored = (column < width) & (row < height)
    across, down = column.to(tl.float32), row.to(tl.float32)
    x = _place(across, down, a, b, c, blocks)
    y = _place(across, down, d, e, f, blocks)
    if PERSPECTIVE:
        below = _place(across, down, g, h, i, blocks)
        x = tl.div_rn(x, below)
        y = tl.div_rn(y, below)
    begin = image * source_height * source_width * CHANNELS
    to = target + image * height * width * CHANNELS + (row * width + column) * CHANNELS
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
