"""Triton kernels of elementwise functions on uint8: table lookups, and two images combined."""

from __future__ import annotations

import triton
import triton.language as tl

from devicecore.cv.triton_support.kernels.pixels import (
    PLACE,
    as_integer,
    place_bits,
    placed,
    saturated,
    saturated_word,
)

_HIGHEST, _OTHERS = tl.constexpr(0x80808080), tl.constexpr(0x7F7F7F7F)
_ALL = tl.constexpr(0xFFFFFFFF)


@triton.jit
def look_up(
    source,
    target,
    table,  # (channels, 256), or one for all
    count,
    CHANNELS: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Replace each byte by what a table has for it."""
    first = tl.program_id(0).to(tl.int64) * BLOCK
    at = tl.arange(0, BLOCK)
    inside = at < count - first
    index = tl.load(source + first + at, mask=inside, other=0).to(tl.int32)
    if CHANNELS > 1:
        index += (((first % CHANNELS).to(tl.int32) + at) % CHANNELS) * 256
    tl.store(target + first + at, tl.load(table + index), mask=inside)


@triton.jit
def _sum(a, b):
    """Return sums of the four bytes of words, saturated."""
    total = ((a & _OTHERS) + (b & _OTHERS)) ^ ((a ^ b) & _HIGHEST)
    over = ((a & b) | ((a | b) & (total ^ _ALL))) & _HIGHEST
    return total | ((over << 1) - (over >> 7))


@triton.jit
def _excess(a, b):
    """Return how much larger bytes are than others, or 0."""
    return _sum(a ^ _ALL, b) ^ _ALL


@triton.jit
def _of_words(a, b, OPERATION: tl.constexpr):
    if OPERATION == "add":
        result = _sum(a, b)
    elif OPERATION == "subtract":
        result = _excess(a, b)
    elif OPERATION == "absdiff":
        result = _excess(a, b) | _excess(b, a)
    elif OPERATION == "min":
        result = a - _excess(a, b)
    elif OPERATION == "max":
        result = b + _excess(a, b)
    elif OPERATION == "bitwise_and":
        result = a & b
    elif OPERATION == "bitwise_or":
        result = a | b
    else:
        result = a ^ b
    return result


@triton.jit
def _of_bytes(a, b, alpha, beta, gamma, OPERATION: tl.constexpr):
    """Return what becomes of bytes in float32, the first ones more by `PLACE`."""
    if OPERATION == "addWeighted":  # each product is fused with its sum
        return tl.fma(a - PLACE, alpha, tl.fma(b, beta, gamma))
    # The product is rounded once: what the place has in it is taken away exactly.
    product = tl.fma(a, alpha, -(alpha * PLACE))
    if OPERATION == "multiply":
        return product * b
    # A number by nothing is nothing.
    return tl.where(b == 0.0, 0.0, tl.div_rn(product, tl.where(b == 0.0, 1.0, b)))


@triton.jit
def combine(
    first,  # whole words of bytes
    second,
    target,
    count,
    alpha,
    beta,
    gamma,
    OPERATION: tl.constexpr,
    IS_FLOAT: tl.constexpr,
    IS_SMALL: tl.constexpr,  # whether float32 results are whole numbers when `ROUNDING` is added
    NATIVE: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Compute each byte of two images' bytes, saturated."""
    begin = tl.program_id(0).to(tl.int64) * BLOCK
    at = tl.arange(0, BLOCK)
    inside = at < count - begin
    a = tl.load(first.to(tl.pointer_type(tl.uint32)) + begin + at, mask=inside, other=0)
    b = tl.load(second.to(tl.pointer_type(tl.uint32)) + begin + at, mask=inside, other=0)
    if IS_FLOAT:
        bits = place_bits(NATIVE)
        values = ()
        for place in tl.static_range(4):
            one, other = placed(a, bits, place, NATIVE), placed(b, bits, place, NATIVE) - PLACE
            value = _of_bytes(one, other, alpha, beta, gamma, OPERATION)
            whole = as_integer(value) if IS_SMALL else saturated(value)
            values = values + (whole,)  # noqa: RUF005 - Triton knows no unpacking
        found = saturated_word(*values, NATIVE).to(tl.uint32, bitcast=True)
    else:
        found = _of_words(a, b, OPERATION)
    tl.store(target.to(tl.pointer_type(tl.uint32)) + begin + at, found, mask=inside)
