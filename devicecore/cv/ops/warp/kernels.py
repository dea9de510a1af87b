"""Triton kernel of warps: places by a matrix, and the pixels around them.

It is compiled without the fusing that Triton does by itself: what OpenCV fuses is fused by name.
"""

from __future__ import annotations

import triton
import triton.language as tl

from devicecore.cv.triton_support.kernels.pixels import reciprocal
from devicecore.cv.triton_support.kernels.sampling import (
    afresh,
    inner_pixels,
    inner_places,
    pixels_between,
    store_groups,
    store_pixels,
)


@triton.jit
def _place(x, y, a, b, c, blocks):
    """Return one coordinate; the columns after the last whole block add in another order."""
    product = y * b
    return tl.where(x < blocks, tl.fma(x, a, product + c), tl.fma(x, a, product) + c)


@triton.jit
def _plane(x, y, a, b, c):
    """Return about what a linear function is at places."""
    return tl.fma(x, a, tl.fma(y, b, c))


@triton.jit
def _quotient(above, minus, inverse):
    """Return a quotient rounded as a division rounds it.

    Args:
        above: The numerator.
        minus: The denominator, less than nothing for one that is more.
        inverse: That of the denominator.

    The first quotient is off by a few units in the last place, and two steps of Newton's with exact
    remainders end with the nearest number, as in the division that a GPU's compiler makes of it.
    """
    result = above * inverse
    result = tl.fma(tl.fma(result, minus, above), inverse, result)
    return tl.fma(tl.fma(result, minus, above), inverse, result)


@triton.jit
def _quotients(x, y, below, NATIVE: tl.constexpr):
    """Return two quotients of one denominator, which neither overflow nor underflow."""
    if NATIVE:
        inverse = reciprocal(below, NATIVE)
        # Triton's compiler would make one subtraction from nothing of each minus.
        minus = -below
        inverse = tl.fma(tl.fma(minus, inverse, 1.0), inverse, inverse)
        return _quotient(x, minus, inverse), _quotient(y, minus, inverse)
    return tl.div_rn(x, below), tl.div_rn(y, below)


@triton.jit
def _store(
    target,
    left,
    top,
    width,
    height,
    pixels,
    IN_GROUPS: tl.constexpr,
    CHANNELS: tl.constexpr,
    NATIVE: tl.constexpr,
    ACROSS: tl.constexpr,
    ROWS: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Write the pixels of a program of `warp` into one image, as far as it goes."""
    if IN_GROUPS:
        pixels = tl.reshape(pixels, (BLOCK // ACROSS, ROWS, ACROSS // 4, 2, 2))
        pixels = tl.reshape(tl.permute(pixels, (1, 0, 2, 3, 4)), (ROWS * BLOCK // 4, 2, 2))
        group = tl.arange(0, ROWS * BLOCK // 4)
        column, row = left // 4 + group % (BLOCK // 4), top + group // (BLOCK // 4)
        stored = (column * 4 < width) & (row < height)
        words = target.to(tl.pointer_type(tl.int32))
        store_groups(words, row * (width // 4) + column, stored, pixels, CHANNELS, NATIVE)
    else:
        lane = tl.arange(0, ROWS * BLOCK)
        column = left + lane // (ACROSS * ROWS) * ACROSS + lane % ACROSS
        row = top + lane // ACROSS % ROWS
        stored = (column < width) & (row < height)
        store_pixels(target + (row * width + column) * CHANNELS, pixels, stored, CHANNELS)


@triton.jit(
    do_not_specialize=[
        "source_height",
        "source_width",
        "source_bytes",
        "height",
        "width",
        "bytes_each",
        "value",
        "images",
    ]
)
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
    off_xa,  # what says whether a program reads inside of the source; see `_inner_test`
    off_xb,
    off_xc,
    off_ya,
    off_yb,
    off_yc,
    most_xa,
    most_xb,
    most_xc,
    most_ya,
    most_yb,
    most_yc,
    blocks,
    source_height,
    source_width,
    source_bytes,  # of an image
    height,
    width,
    bytes_each,  # of an image of the target
    value,
    images,
    PERSPECTIVE: tl.constexpr,
    NEAREST: tl.constexpr,
    BORDER: tl.constexpr,
    PAIRS: tl.constexpr,
    CHANNELS: tl.constexpr,
    WHOLE_ROWS: tl.constexpr,  # whether rows of the source are whole words
    IN_GROUPS: tl.constexpr,  # whether rows of the target are whole groups of four pixels
    NATIVE: tl.constexpr,
    ACROSS: tl.constexpr,  # pixels of a row that a warp of threads has
    ROWS: tl.constexpr,
    IMAGES: tl.constexpr,  # so many are read at the same places; again the last one if none is left
    BLOCK: tl.constexpr,
):
    """Read a source at the places that a matrix gives."""
    left = tl.program_id(0) * BLOCK
    top = tl.program_id(1) * ROWS
    # A warp has 16 x 2 pixels: fewer rows of a source that is turned than 32 x 1 would have. Those
    # of one thread are in one row, as far as a program has so many columns.
    lane = tl.arange(0, ROWS * BLOCK)
    block = lane // (ACROSS * ROWS) * ACROSS
    line = lane // ACROSS % ROWS
    first, upper = left.to(tl.float32), top.to(tl.float32)
    across = (first + (lane % ACROSS).to(tl.float32)) + block.to(tl.float32)
    down = upper + line.to(tl.float32)
    most_x, most_y = most_xc, most_yc
    if PERSPECTIVE:
        most_x = _plane(first, upper, most_xa, most_xb, most_xc)
        most_y = _plane(first, upper, most_ya, most_yb, most_yc)
    is_inner = tl.abs(_plane(first, upper, off_xa, off_xb, off_xc)) <= most_x
    is_inner &= tl.abs(_plane(first, upper, off_ya, off_yb, off_yc)) <= most_y
    is_inner &= first + BLOCK <= blocks
    begin = tl.program_id(2) * IMAGES
    if is_inner:
        x = tl.fma(across, a, down * b + c)
        y = tl.fma(across, d, down * e + f)
        if PERSPECTIVE:
            x, y = _quotients(x, y, tl.fma(across, g, down * h + i), NATIVE)
        pitch = source_width * CHANNELS
        at, beside, below = inner_places(x, y, pitch, NEAREST, CHANNELS, NATIVE)
        for number in range(IMAGES):
            image = tl.minimum(begin + number, images - 1).to(tl.int64)
            pixels = inner_pixels(
                source,
                image * source_bytes,
                at,
                beside,
                below,
                pitch,
                NEAREST,
                WHOLE_ROWS,
                CHANNELS,
                NATIVE,
            )
            to = target + image * bytes_each
            _store(
                to,
                left,
                top,
                width,
                height,
                pixels,
                IN_GROUPS,
                CHANNELS,
                NATIVE,
                ACROSS,
                ROWS,
                BLOCK,
            )
    else:
        x = _place(across, down, a, b, c, blocks)
        y = _place(across, down, d, e, f, blocks)
        if PERSPECTIVE:
            divisor = _place(across, down, g, h, i, blocks)
            x, y = tl.div_rn(x, divisor), tl.div_rn(y, divisor)
        wanted = (left + block + lane % ACROSS < width) & (top + line < height)
        for number in range(IMAGES):
            image = tl.minimum(begin + number, images - 1).to(tl.int64)
            pixels = pixels_between(
                source,
                image * source_bytes,
                afresh(x, number, NATIVE),
                afresh(y, number, NATIVE),
                source_width,
                source_height,
                value,
                wanted,
                NEAREST,
                BORDER,
                PAIRS,
                CHANNELS,
                NATIVE,
            )
            to = target + image * bytes_each
            _store(
                to,
                left,
                top,
                width,
                height,
                pixels,
                IN_GROUPS,
                CHANNELS,
                NATIVE,
                ACROSS,
                ROWS,
                BLOCK,
            )
