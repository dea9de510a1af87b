"""Element types: OpenCV's saturation and rounding; types that torch can only move."""

from __future__ import annotations

import torch

# Types whose values are only moved around, never computed with.
MOVABLE = frozenset({"uint8", "int8", "uint16", "int16", "int32", "float16", "float32", "float64"})
_SIGNED = {torch.uint16: torch.int16, torch.uint32: torch.int32}


def unsigned_as_signed(x: torch.Tensor) -> torch.Tensor:
    """Return the same bits in a type that torch can index on every device."""
    signed = _SIGNED.get(x.dtype)
    return x if signed is None else x.view(signed)


def saturate(x: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """Return *x* in another type: rounded half to even, and cut to what the type holds."""
    if dtype.is_floating_point:
        return x.to(dtype)
    limits = torch.iinfo(dtype)
    if x.is_floating_point():
        x = x.round()
    return x.clamp(limits.min, limits.max).to(dtype)


def fma(a: torch.Tensor, b: torch.Tensor | float, c: torch.Tensor | float) -> torch.Tensor:
    """Return ``a * b + c`` of float32, rounded once.

    A product of two float32 is exact in float64, so only the sum is rounded there, and once more to
    float32, which differs from a fused operation about once in 2**29 values.
    """
    factor = b.double() if isinstance(b, torch.Tensor) else b
    return (a.double() * factor + (c.double() if isinstance(c, torch.Tensor) else c)).float()


def quotient_and_rest(x: torch.Tensor, y: torch.Tensor | int) -> tuple[torch.Tensor, torch.Tensor]:
    """Return ``x // y`` and ``x % y``, exactly, of int32 numbers that are not negative.

    Not every device divides integers; float32 is near enough for quotients below 2**22.
    """
    result = (x.float() / y).floor().to(torch.int32)
    rest = x - result * y
    off = (rest >= y).to(torch.int32) - (rest < 0).to(torch.int32)
    return result + off, rest - off * y


def nearest_quotient(x: torch.Tensor, y: torch.Tensor | int) -> torch.Tensor:
    """Return the same rounded half to even."""
    result, rest = quotient_and_rest(x, y)
    twice = rest * 2
    is_more = (twice > y) | ((twice == y) & (result % 2 == 1))
    return result + is_more.to(torch.int32)
