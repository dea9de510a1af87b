"""Triton kernel that gathers pixels by tables of columns and rows."""

from __future__ import annotations

import triton
import triton.language as tl

from devicecore.cv.triton_support.kernels.pixels import byte, store_four


@triton.jit
def _copy_run(
    source,
    target,
    start,
    group,
    read,
    stored,
    value,
    CHANNELS: tl.constexpr,
    RUN: tl.constexpr,
    CONSTANT: tl.constexpr,
):
    """Copy groups of four pixels that lie one after the other, from byte *start* on.

    Words of the source are read, whose bytes are moved to where they belong.
    """
    if RUN < 0:
        start -= 3 * CHANNELS  # the last of the four is the first one
    shift = (start & 3).to(tl.int32) * 8
    at = source.to(tl.pointer_type(tl.int32)) + (start >> 2) + RUN * CHANNELS * group
    found = ()
    for place in tl.static_range(CHANNELS + 1):
        # The last one has other pixels only, where a group is whole words.
        there = read if place < CHANNELS else read & (shift > 0)
        found = found + (tl.load(at + place, mask=there, other=0),)  # noqa: RUF005 - no unpacking
    words = ()
    for place in tl.static_range(CHANNELS):
        low = (found[place].to(tl.uint32, bitcast=True) >> shift).to(tl.int32, bitcast=True)
        high = (found[place + 1] << 1) << (31 - shift)
        words = words + (low | high,)  # noqa: RUF005 - no unpacking
    values = ()
    for pixel in tl.static_range(4):
        for channel in tl.static_range(CHANNELS):
            one = byte(words, (pixel if RUN > 0 else 3 - pixel) * CHANNELS + channel)
            if CONSTANT:
                one = tl.where(read, one, byte((value,), channel))
            values = values + (one,)  # noqa: RUF005 - no unpacking
    store_four(target.to(tl.pointer_type(tl.int32)), group, stored, values, CHANNELS)


@triton.jit
def _pixel(source, columns, x, read, stored, value, CHANNELS: tl.constexpr, CONSTANT: tl.constexpr):
    """Return a tuple of the channels of pixels from anywhere in a row, as int32."""
    column = tl.load(columns + x, mask=stored, other=-1)
    there = read & (column >= 0) if CONSTANT else read
    values = ()
    for channel in tl.static_range(CHANNELS):
        one = tl.load(source + column + channel, mask=there, other=0).to(tl.int32)
        if CONSTANT:
            one = tl.where(there, one, byte((value,), channel))
        values = values + (one,)  # noqa: RUF005 - no unpacking
    return values


@triton.jit(
    do_not_specialize=[
        "value",
        "source_bytes",
        "width",
        "before",
        "run",
        "run_start",
        "edge_programs",
    ]
)
def pick(
    source,  # bytes (images, source rows, source columns, CHANNELS)
    target,
    columns,  # int32, for each column the byte of its pixel in a row of the source, or less than 0
    rows,  # int32, for each row the byte where the source's begins, or less than 0
    value,  # of the pixels outside, a byte for each channel in one word
    source_bytes,
    width,
    before,  # groups of four pixels before a run
    run,  # groups of it, which lie one after the other in the source
    run_start,  # byte of the row where the first pixel of the run lies
    edge_programs,  # programs of a row that are not for the run
    CHANNELS: tl.constexpr,
    RUN: tl.constexpr,  # 1 if the run has the source's order, -1 if it is turned round, 0 for none
    FOUR: tl.constexpr,  # whether rows of the result are whole groups of four pixels
    CONSTANT: tl.constexpr,  # whether anything is outside
    BLOCK: tl.constexpr,
):
    """Copy pixels to where they are asked for; what is outside of the source has a constant value.

    Each program has a part of one row. Both images are smaller than 2**31 bytes.
    """
    image = tl.program_id(2).to(tl.int64)
    y = tl.program_id(1)
    row = tl.load(rows + y)
    begin = image * source_bytes
    target += (image * tl.num_programs(1) + y) * (width * CHANNELS)
    lane = tl.arange(0, BLOCK)
    part = tl.program_id(0) - edge_programs
    is_run = part >= 0
    if RUN != 0:  # noqa: SIM102 - this one is known when it is compiled
        if is_run:
            group = part * BLOCK + lane
            stored = group < run
            read = stored & (row >= 0) if CONSTANT else stored
            start, to = begin + row + run_start, target + before * 4 * CHANNELS
            _copy_run(source, to, start, group, read, stored, value, CHANNELS, RUN, CONSTANT)
    unit = tl.program_id(0) * BLOCK + lane
    if FOUR:
        if not is_run:
            unit = tl.where(unit < before, unit, unit + run)
            stored = unit * 4 < width
            read = stored & (row >= 0) if CONSTANT else stored
            values = ()
            for pixel in tl.static_range(4):
                x = 4 * unit + pixel
                found = _pixel(
                    source + begin + row, columns, x, read, stored, value, CHANNELS, CONSTANT
                )
                values = values + found
            store_four(target.to(tl.pointer_type(tl.int32)), unit, stored, values, CHANNELS)
    else:
        stored = unit < width
        read = stored & (row >= 0) if CONSTANT else stored
        found = _pixel(source + begin + row, columns, unit, read, stored, value, CHANNELS, CONSTANT)
        for channel in tl.static_range(CHANNELS):
            to = target + unit * CHANNELS + channel
            tl.store(to, found[channel].to(tl.uint8), mask=stored)
