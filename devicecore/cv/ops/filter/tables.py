"""Kernel weights scaled to integers, with which float32 sums are exact."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from attrs import frozen

if TYPE_CHECKING:
    from numpy.typing import NDArray

_MOST_BITS = 16
# Integers up to this one are float32 numbers.
_EXACT = 1 << 24


@frozen(eq=False)
class WholeWeights:
    """Weights times a power of two.

    Attributes:
        values: The weights, as int64.
        bits: The power.
    """

    values: NDArray[np.int64]
    bits: int

    @property
    def total(self) -> int:
        """The sum of their absolute values."""
        return int(np.abs(self.values).sum())


def whole_weights(weights: NDArray[Any]) -> WholeWeights | None:
    """Return *weights* with the least bits after the point, or None if these are too many."""
    if not np.isfinite(weights).all():
        return None
    for bits in range(_MOST_BITS + 1):
        scaled = weights.astype(np.float64) * (1 << bits)
        if np.array_equal(scaled, np.rint(scaled)) and np.abs(scaled).max(initial=0) <= _EXACT:
            return WholeWeights(scaled.astype(np.int64), bits)
    return None


def stays_exact(largest: float, total: int, delta: float, bits: int) -> bool:
    """Return whether no sum needs rounding.

    Args:
        largest: Of the absolute values of an image.
        total: Of the absolute values of the weights.
        delta: What is added in the end.
        bits: Of the weights.
    """
    added = abs(delta) * (1 << bits)
    return added == round(added) and largest * total + added < _EXACT
