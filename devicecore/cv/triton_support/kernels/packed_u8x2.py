"""Two uint8 values packed in each 32-bit word, for minimum and maximum.

What is in the lower bytes is never looked at, but to tell apart values that are equal.
"""

from __future__ import annotations

import triton
import triton.language as tl

_LOWER = tl.constexpr(0xFFFF)
_UPPER = tl.constexpr(0xFFFF0000)


@triton.jit
def split(words):
    """Return bytes 0 and 2 of each of several words, and bytes 1 and 3."""
    even = ()
    for place in tl.static_range(len(words)):
        even = even + (words[place] << 8,)  # noqa: RUF005 - Triton knows no unpacking
    return even, words


@triton.jit
def joined(even, odd):
    """Return the words that two bytes each were taken from."""
    return ((even >> 8) & 0x00FF00FF) | (odd & 0xFF00FF00)


@triton.jit
def lesser(a, b, NATIVE: tl.constexpr):
    """Return the lesser of the halves; by one instruction where the GPU has it."""
    if NATIVE:
        result = tl.inline_asm_elementwise(
            "min.u16x2 $0, $1, $2;", "=r,r,r", [a, b], dtype=tl.uint32, is_pure=True, pack=1
        )
    else:
        result = tl.minimum(a & _LOWER, b & _LOWER) | tl.minimum(a & _UPPER, b & _UPPER)
    return result


@triton.jit
def greater(a, b, NATIVE: tl.constexpr):
    """Return the greater of the halves; by one instruction where the GPU has it."""
    if NATIVE:
        result = tl.inline_asm_elementwise(
            "max.u16x2 $0, $1, $2;", "=r,r,r", [a, b], dtype=tl.uint32, is_pure=True, pack=1
        )
    else:
        result = tl.maximum(a & _LOWER, b & _LOWER) | tl.maximum(a & _UPPER, b & _UPPER)
    return result
