"""Triton kernel of remaps: places from maps, and the pixels around them.

It is compiled without the fusing that Triton does by itself: what OpenCV fuses is fused by name.
"""

from __future__ import annotations

import triton
import triton.language as tl

from devicecore.cv.triton_support.kernels.sampling import (
    afresh,
    inner_pixels,
    inner_places,
    pixels_between,
    store_groups,
    store_pixels,
)


@triton.jit
def _inside(place, length):
    """Return negative numbers where places are not between the first and the third to last pixel.

    The bits of float32 numbers that are not negative are in their order, those of others negative.
    """
    bits = place.to(tl.int32, bitcast=True)
    most = tl.where(length < 3, -1, (length - 3).to(tl.float32).to(tl.int32, bitcast=True))
    return bits | (most - bits)


@triton.jit
def _store_in_order(
    target,
    first,
    at,
    pixels,
    found,
    IN_GROUPS: tl.constexpr,
    CHANNELS: tl.constexpr,
    NATIVE: tl.constexpr,
    WARPS: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Write the pixels of a program of `remap` into one image, as far as it goes."""
    if IN_GROUPS:
        each: tl.constexpr = BLOCK // (32 * WARPS)
        found = tl.permute(tl.reshape(found, (each, WARPS, 8, 2, 2)), (1, 0, 2, 3, 4))
        group = first // 4 + tl.arange(0, BLOCK // 4)
        found = tl.reshape(found, (BLOCK // 4, 2, 2))
        words = target.to(tl.pointer_type(tl.int32))
        store_groups(words, group, group * 4 < pixels, found, CHANNELS, NATIVE)
    else:
        store_pixels(target + at * CHANNELS, found, at < pixels, CHANNELS)


@triton.jit(
    do_not_specialize=[
        "source_height",
        "source_width",
        "source_bytes",
        "pixels",
        "width",
        "value",
        "map_step",
        "images",
    ]
)
def remap(
    source,  # bytes (images, source height, source width, CHANNELS)
    columns,  # float32, with STEP numbers for each pixel of the result
    rows,
    target,
    source_height,
    source_width,
    source_bytes,  # of an image
    pixels,
    width,
    value,
    map_step,  # pixels from one map to the next one; 0 for one that all images share
    images,
    STEP: tl.constexpr,
    RELATIVE: tl.constexpr,
    NEAREST: tl.constexpr,
    BORDER: tl.constexpr,
    PAIRS: tl.constexpr,
    CHANNELS: tl.constexpr,
    WHOLE_ROWS: tl.constexpr,  # whether rows of the source are whole words
    IN_GROUPS: tl.constexpr,  # whether images of the target are whole groups of four pixels
    NATIVE: tl.constexpr,
    WARPS: tl.constexpr,  # of 32 threads each
    IMAGES: tl.constexpr,  # so many are read at the same places; again the last one if none is left
    BLOCK: tl.constexpr,
):
    """Read a source at the places that maps give; with one map of both, rows are a number on."""
    begin = tl.program_id(1) * IMAGES
    first = tl.program_id(0) * BLOCK
    # All the pixels of a warp lie side by side: it can exchange them for groups of four.
    lane = tl.arange(0, BLOCK)
    each: tl.constexpr = BLOCK // (32 * WARPS)
    at = first + lane // 32 % WARPS * (32 * each) + lane // (32 * WARPS) * 32 + lane % 32
    # Else Triton lets threads that lie beside one another read four places each, of maps and so
    # also of images, where they are far from each other.
    at = tl.max_contiguous(at, 1)
    stored = at < pixels
    own = begin.to(tl.int64) * map_step * STEP
    x = tl.load(columns + own + at * STEP, mask=stored, other=1.0)
    y = tl.load(rows + own + at * STEP + (STEP - 1), mask=stored, other=1.0)
    if RELATIVE:
        row = at // width
        x += (at - row * width).to(tl.float32)
        y += row.to(tl.float32)
    inside = tl.minimum(_inside(x, source_width), _inside(y, source_height))
    if tl.min(inside, 0) >= 0:
        pitch = source_width * CHANNELS
        place, beside, below = inner_places(x, y, pitch, NEAREST, CHANNELS, NATIVE)
        for number in range(IMAGES):
            image = tl.minimum(begin + number, images - 1).to(tl.int64)
            found = inner_pixels(
                source,
                image * source_bytes,
                place,
                beside,
                below,
                pitch,
                NEAREST,
                WHOLE_ROWS,
                CHANNELS,
                NATIVE,
            )
            to = target + image * (pixels * CHANNELS)
            _store_in_order(to, first, at, pixels, found, IN_GROUPS, CHANNELS, NATIVE, WARPS, BLOCK)
    else:
        for number in range(IMAGES):
            image = tl.minimum(begin + number, images - 1).to(tl.int64)
            found = pixels_between(
                source,
                image * source_bytes,
                afresh(x, number, NATIVE),
                afresh(y, number, NATIVE),
                source_width,
                source_height,
                value,
                stored,
                NEAREST,
                BORDER,
                PAIRS,
                CHANNELS,
                NATIVE,
            )
            to = target + image * (pixels * CHANNELS)
            _store_in_order(to, first, at, pixels, found, IN_GROUPS, CHANNELS, NATIVE, WARPS, BLOCK)
