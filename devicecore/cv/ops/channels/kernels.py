"""Triton kernels that split pixels into planes and merge planes, four pixels at a time."""

from __future__ import annotations

import triton
import triton.language as tl

from devicecore.cv.triton_support.kernels.pixels import byte, load_four, store_four


@triton.jit(do_not_specialize=["groups"])
def split(source, a, b, c, d, groups, CHANNELS: tl.constexpr, BLOCK: tl.constexpr):
    """Write a plane for each channel; with fewer than four, the last ones are not written."""
    first = tl.program_id(0).to(tl.int64) * BLOCK
    group = tl.arange(0, BLOCK)
    inside = group < groups - first
    at = source.to(tl.pointer_type(tl.int32)) + first * CHANNELS
    words = load_four(at, group, inside, CHANNELS)
    planes = (a, b, c, d)
    for channel in tl.static_range(CHANNELS):
        values = ()
        for pixel in tl.static_range(4):
            values = values + (byte(words, pixel * CHANNELS + channel),)  # noqa: RUF005
        to = planes[channel].to(tl.pointer_type(tl.int32)) + first
        store_four(to, group, inside, values, 1)


@triton.jit(do_not_specialize=["groups"])
def merge(a, b, c, d, target, groups, CHANNELS: tl.constexpr, BLOCK: tl.constexpr):
    """Make pixels of a plane for each channel; with fewer than four, the last ones are not read."""
    first = tl.program_id(0).to(tl.int64) * BLOCK
    group = tl.arange(0, BLOCK)
    inside = group < groups - first
    planes = (a, b, c, d)
    words = ()
    for channel in tl.static_range(CHANNELS):
        at = planes[channel].to(tl.pointer_type(tl.int32)) + first
        words = words + load_four(at, group, inside, 1)
    values = ()
    for pixel in tl.static_range(4):
        for channel in tl.static_range(CHANNELS):
            values = values + (byte(words, channel * 4 + pixel),)  # noqa: RUF005
    to = target.to(tl.pointer_type(tl.int32)) + first * CHANNELS
    store_four(to, group, inside, values, CHANNELS)
