"""Triton's kernels for functions of each value by itself: read from a table, or of two images."""

from __future__ import annotations

import triton
import triton.language as tl

# Added to a small float32 and taken off again, it leaves the whole number next to it, half to even.
_ROUNDING = tl.constexpr(12582912.0)


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
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = at < count
    index = tl.load(source + at, mask=inside, other=0).to(tl.int32)
    if CHANNELS > 1:
        index += (at % CHANNELS).to(tl.int32) * 256
    tl.store(target + at, tl.load(table + index), mask=inside)


@triton.jit
def combine(
    first,
    second,
    target,
    count,
    alpha,
    beta,
    gamma,
    OPERATION: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Compute each byte of two images' bytes, saturated."""
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = at < count
    a = tl.load(first + at, mask=inside, other=0).to(tl.int32)
    b = tl.load(second + at, mask=inside, other=0).to(tl.int32)
    if OPERATION == "add":
        found = tl.minimum(a + b, 255)
    elif OPERATION == "subtract":
        found = tl.maximum(a - b, 0)
    elif OPERATION == "absdiff":
        found = tl.abs(a - b)
    elif OPERATION == "min":
        found = tl.minimum(a, b)
    elif OPERATION == "max":
        found = tl.maximum(a, b)
    elif OPERATION == "bitwise_and":
        found = a & b
    elif OPERATION == "bitwise_or":
        found = a | b
    elif OPERATION == "bitwise_xor":
        found = a ^ b
    else:  # addWeighted, each product fused with its sum
        total = tl.fma(a.to(tl.float32), alpha, tl.fma(b.to(tl.float32), beta, gamma))
        total = tl.minimum(tl.maximum(total, 0.0), 255.0)
        found = ((total + _ROUNDING) - _ROUNDING).to(tl.int32)
    tl.store(target + at, found.to(tl.uint8), mask=inside)
