"""`FloatPair`: double-float arithmetic, about 48 bits in two float32, for want of float64."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch
from attrs import frozen

from devicecore.cv.torch_support.error_free import two_product, two_square, two_sum

if TYPE_CHECKING:
    from collections.abc import Callable

Tensor = torch.Tensor


@frozen(eq=False)
class FloatPair:
    """Numbers that are sums of two float32.

    Attributes:
        high: The sums, rounded to float32.
        low: What that took away.
    """

    high: Tensor
    low: Tensor

    @property
    def shape(self) -> torch.Size:
        """Its axes."""
        return self.high.shape

    def each(self, function: Callable[[Tensor], Tensor]) -> FloatPair:
        """Return both parts with something done to each, such as a choice of elements."""
        return FloatPair(function(self.high), function(self.low))

    def narrow(self, axis: int, start: int, length: int) -> FloatPair:
        """Return a part of an axis."""
        return self.each(lambda x: x.narrow(axis, start, length))

    def clone(self) -> FloatPair:
        """Return itself: it is never changed."""
        return self

    def add_(self, other: FloatPair) -> FloatPair:
        """Return a sum, as a new pair."""
        return self + other

    def __add__(self, other: FloatPair) -> FloatPair:
        """Return a sum."""
        high, rest = two_sum(self.high, other.high)
        low, least = two_sum(self.low, other.low)
        high, rest = _renormalised(high, rest + low)
        return FloatPair(*_renormalised(high, rest + least))

    def __neg__(self) -> FloatPair:
        """Return the numbers with the other sign."""
        return self.each(torch.neg)

    def __sub__(self, other: FloatPair) -> FloatPair:
        """Return a difference."""
        return self + -other

    def __mul__(self, other: FloatPair) -> FloatPair:
        """Return a product."""
        high, rest = two_product(self.high, other.high)
        rest = rest + (self.high * other.low + self.low * other.high)
        return FloatPair(*_renormalised(high, rest))

    def __truediv__(self, other: FloatPair) -> FloatPair:
        """Return a quotient."""
        first = self.high / other.high
        rest = self - other * as_pair(first)
        second = rest.high / other.high
        rest = rest - other * as_pair(second)
        return FloatPair(*two_sum(first, second)) + as_pair(rest.high / other.high)

    def squared(self) -> FloatPair:
        """Return the squares."""
        high, rest = two_square(self.high)
        return FloatPair(*_renormalised(high, rest + 2 * self.high * self.low))

    def root(self) -> Tensor:
        """Return the square roots as float32; of what is negative, 0."""
        about = self.high.clamp(min=0).sqrt()
        square, lost = two_square(about)
        off = ((self.high - square) - lost) + self.low
        return torch.where(about > 0, about + off / (about * 2), 0.0)

    def summed(self) -> FloatPair:
        """Return sums over the axes between the first and the last one, by halves."""
        result = self.each(lambda x: x.flatten(1, -2))
        while (count := result.shape[1]) > 1:
            half = count // 2
            both = result.narrow(1, 0, half) + result.narrow(1, half, half)
            if count % 2:
                rest = result.narrow(1, count - 1, 1)
                both = FloatPair(
                    torch.cat((both.high, rest.high), 1), torch.cat((both.low, rest.low), 1)
                )
            result = both
        return result.each(lambda x: x[:, 0])

    def float(self) -> Tensor:
        """Return the numbers as float32."""
        return self.high + self.low


def _renormalised(high: Tensor, rest: Tensor) -> tuple[Tensor, Tensor]:
    """Return a sum and what its rounding took away, where *high* is the larger part (Dekker)."""
    total = high + rest
    return total, rest - (total - high)


def as_pair(x: Tensor) -> FloatPair:
    """Return float32 numbers as pairs."""
    return FloatPair(x, torch.zeros_like(x))


def of_integers(x: Tensor) -> FloatPair:
    """Return integers below 2**48 as pairs."""
    high = x.float()
    return FloatPair(high, (x - high.to(x.dtype)).float())


def constant(value: float, like: Tensor) -> FloatPair:
    """Return a number, on the device of *like*, in a shape that goes with any other."""
    high = np.float32(value)
    low = float(value - float(high)) if np.isfinite(high) else 0.0
    make = [torch.full((1,) * like.ndim, float(x), device=like.device) for x in (high, low)]
    return FloatPair(*make)
