"""Error-free transformations: a sum or a product of float32, and exactly what it lost.

For devices without float64. Each operation has to be rounded by itself, as it is where torch runs
one after the other; a compiler that reorders them, such as with Metal's fast maths, only ever sees
one of them. Results below float32's least normal number (about 1e-38) may be rounded twice.
"""

from __future__ import annotations

import numpy as np
import torch

Tensor = torch.Tensor
# Splits a float32 into two halves of 12 bits, whose products are exact.
_SPLITTER = 4097.0
_SMALL, _SCALE = 2.0**-60, 2.0**60


def two_sum(a: Tensor, b: Tensor | float) -> tuple[Tensor, Tensor]:
    """Return ``a + b`` in float32, and what its rounding took away (Knuth)."""
    total = a + b
    share = total - a
    return total, (a - (total - share)) + (b - share)


def two_product(a: Tensor, b: Tensor | float) -> tuple[Tensor, Tensor]:
    """Return ``a * b`` in float32, and what its rounding took away (Dekker).

    Args:
        a: float32.
        b: float32, or a number that is one.
    """
    product = a * b
    high, low = _split(a)
    other_high, other_low = _split(b) if isinstance(b, Tensor) else _split_number(b)
    lost = (high * other_high - product) + high * other_low + low * other_high
    return product, lost + low * other_low


def two_square(a: Tensor) -> tuple[Tensor, Tensor]:
    """Return ``a * a`` in float32, and what its rounding took away."""
    square = a * a
    high, low = _split(a)
    return square, (high * high - square) + high * low * 2 + low * low


def _split(x: Tensor) -> tuple[Tensor, Tensor]:
    scaled = x * _SPLITTER
    high = scaled - (scaled - x)
    return high, x - high


def _split_number(number: float) -> tuple[float, float]:
    x = np.float32(number)
    scaled = x * np.float32(_SPLITTER)
    high = scaled - (scaled - x)
    return float(high), float(x - high)


def multiplied_and_added(a: Tensor, b: Tensor | float, c: Tensor | float) -> Tensor:
    """Return ``a * b + c`` of float32, rounded once, without float64.

    This is the algorithm of Boldo and Melquiond: the smaller parts are added with rounding to odd,
    which keeps the last rounding from being a second one.
    """
    a = a.float()
    b = b.float() if isinstance(b, Tensor) else float(b)
    c = c.float() if isinstance(c, Tensor) else torch.full_like(a, c)
    plain = a * b
    # What a small product loses would be too small to be held.
    is_small = (plain.abs() < _SMALL) & (c.abs() < 1 / _SMALL)
    scale = torch.where(is_small, _SCALE, 1.0)
    product, lost = two_product(a * scale, b)
    low, least = two_sum(lost, c * scale)
    high, middle = two_sum(product, low)
    result = (high + _rounded_to_odd(least, middle)) / scale
    # Of infinite numbers, and of such that are too large to be split, nothing is recovered.
    return torch.where(result.isfinite(), result, plain + c)


def _rounded_to_odd(a: Tensor, b: Tensor) -> Tensor:
    """Return ``a + b``; where it is not exact, that neighbour of it whose last bit is set."""
    total, lost = two_sum(a, b)
    bits = total.view(torch.int32)
    is_even_and_inexact = ((bits & 1) == 0) & (lost != 0)
    towards = torch.where((lost > 0) == (total > 0), 1, -1).to(torch.int32)
    return torch.where(is_even_and_inexact, bits + towards, bits).view(torch.float32)


def rounded_root(x: Tensor) -> Tensor:
    """Return the square roots of float32 values, rounded once, whatever the device's root is."""
    # Roots of small numbers have squares whose loss would be too small to be held.
    is_small = x < _SMALL
    scaled = torch.where(is_small, x * _SCALE, x)
    about = scaled.sqrt()
    square, lost = two_square(about)
    off = ((scaled - square) - lost) / torch.where(about > 0, about * 2, 1.0)
    result = torch.where(off.isfinite(), about + off, about)
    return torch.where(is_small, result * 2.0**-30, result)
