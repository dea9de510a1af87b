"""Triton kernel of color conversions, four pixels a thread."""

from __future__ import annotations

import triton
import triton.language as tl

from devicecore.cv.ops.color.kernels.hue import from_hls, from_hsv, to_hls, to_hsv
from devicecore.cv.ops.color.kernels.lab import from_lab, to_lab
from devicecore.cv.triton_support.kernels.pixels import (
    byte,
    cut,
    load_four,
    saturated_word,
    store_four,
)


@triton.jit
def _sum(a, b, c, WEIGHTS: tl.constexpr, FIRST: tl.constexpr, BITS: tl.constexpr):
    """Return a sum by three weights, the rest rounded half up."""
    total = a * WEIGHTS[FIRST] + b * WEIGHTS[FIRST + 1] + c * WEIGHTS[FIRST + 2]
    return (total + (1 << (BITS - 1))) >> BITS


@triton.jit
def _luma(blue, green, red, NUMBERS: tl.constexpr):
    """Return luma and what red and blue exceed it by; weights, then of red and of blue."""
    luma = _sum(blue, green, red, NUMBERS, 0, 14)
    half: tl.constexpr = (128 << 14) + (1 << 13)
    of_red = cut(((red - luma) * NUMBERS[3] + half) >> 14)
    of_blue = cut(((blue - luma) * NUMBERS[4] + half) >> 14)
    return luma, of_red, of_blue


@triton.jit
def _from_luma(luma, of_red, of_blue, NUMBERS: tl.constexpr):
    """Return blue, green and red; what the excesses of red and of blue are to them."""
    of_red -= 128
    of_blue -= 128
    half: tl.constexpr = 1 << 13
    blue = cut(luma + ((of_blue * NUMBERS[3] + half) >> 14))
    green = cut(luma + ((of_red * NUMBERS[1] + of_blue * NUMBERS[2] + half) >> 14))
    red = cut(luma + ((of_red * NUMBERS[0] + half) >> 14))
    return blue, green, red


@triton.jit
def _converted(
    a,
    b,
    c,
    tables,
    in_vectors,
    CONVERSION: tl.constexpr,
    NUMBERS: tl.constexpr,
    VECTORS: tl.constexpr,
    NATIVE: tl.constexpr,
):
    """Return the three values of another space, or blue, green and red of them."""
    if CONVERSION == "HSV":
        result = to_hsv(a, b, c, NUMBERS, NATIVE)
    elif CONVERSION == "from HSV":
        result = from_hsv(a, b, c, in_vectors, NUMBERS, VECTORS)
    elif CONVERSION == "HLS":
        result = to_hls(a, b, c, in_vectors, NUMBERS, VECTORS)
    elif CONVERSION == "from HLS":
        result = from_hls(a, b, c, NUMBERS)
    elif CONVERSION == "luma":
        result = _luma(a, b, c, NUMBERS)
    elif CONVERSION == "from luma":
        result = _from_luma(a, b, c, NUMBERS)
    elif CONVERSION == "Lab":
        result = to_lab(a, b, c, tables[0], tables[1], NUMBERS)
    elif CONVERSION == "from Lab":
        result = from_lab(a, b, c, tables[0], tables[1], tables[2], NUMBERS)
    elif CONVERSION == "sums":
        result = (
            cut(_sum(a, b, c, NUMBERS, 0, 12)),
            cut(_sum(a, b, c, NUMBERS, 3, 12)),
            cut(_sum(a, b, c, NUMBERS, 6, 12)),
        )
    else:
        result = (a, b, c)
    return result


@triton.jit(do_not_specialize=["groups", "width", "vector_columns"])
def convert(
    source,  # bytes of groups of four pixels
    target,
    first_table,  # what some conversions read
    second_table,
    third_table,
    groups,
    width,
    vector_columns,  # in a row, those that OpenCV computes with vectors
    CONVERSION: tl.constexpr,
    NUMBERS: tl.constexpr,
    VECTORS: tl.constexpr,  # whether that is done with "all", "some" or "none"
    READ: tl.constexpr,  # places of three channels among those of the source
    WRITTEN: tl.constexpr,  # which of the three values, the source's alpha or 255 are the target
    FROM: tl.constexpr,
    NATIVE: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Convert pixels, each by itself."""
    channels: tl.constexpr = len(WRITTEN)
    first = tl.program_id(0).to(tl.int64) * BLOCK
    group = tl.arange(0, BLOCK)
    inside = group < groups - first
    words = load_four(source.to(tl.pointer_type(tl.int32)) + first * FROM, group, inside, FROM)
    tables = (first_table, second_table, third_table)
    values = ()
    for pixel in tl.static_range(4):
        a = byte(words, pixel * FROM + READ[0])
        b = byte(words, pixel * FROM + READ[1])
        c = byte(words, pixel * FROM + READ[2])
        if CONVERSION == "gray":
            values = values + (_sum(a, b, c, NUMBERS, 0, 15),)  # noqa: RUF005 - Triton knows no other
        else:
            column = group
            if VECTORS == "some":
                column = ((4 * first % width).to(tl.int32) + 4 * group + pixel) % width
            found = _converted(
                a, b, c, tables, column < vector_columns, CONVERSION, NUMBERS, VECTORS, NATIVE
            )
            for place in tl.static_range(channels):
                if place < 3:
                    value = found[WRITTEN[place]]
                elif WRITTEN[place] == 3:
                    value = byte(words, pixel * FROM + 3)
                else:
                    value = tl.full((BLOCK,), 255, tl.int32)
                values = values + (value,)  # noqa: RUF005 - the same
    to = target.to(tl.pointer_type(tl.int32)) + first * channels
    if CONVERSION == "Lab":  # it is not cut to bytes yet
        for place in tl.static_range(channels):
            word = saturated_word(
                values[4 * place],
                values[4 * place + 1],
                values[4 * place + 2],
                values[4 * place + 3],
                NATIVE,
            )
            tl.store(to + group * channels + place, word, mask=inside)
    else:
        store_four(to, group, inside, values, channels)
