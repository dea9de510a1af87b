"""The weights of `cv2.GaussianBlur`, in floating and in fixed point."""

from __future__ import annotations

import math

import numpy as np

# Where no sigma is given, small kernels have weights of their own.
_SMALL: dict[int, tuple[float, ...]] = {
    1: (1.0,),
    3: (0.25, 0.5, 0.25),
    5: (0.0625, 0.25, 0.375, 0.25, 0.0625),
    7: (0.03125, 0.109375, 0.21875, 0.28125, 0.21875, 0.109375, 0.03125),
    9: tuple(each / 256 for each in (4, 13, 30, 51, 60, 51, 30, 13, 4)),
}


def weights(taps: int, sigma: float) -> list[float]:
    """Return the weights in float64; without a positive sigma, one that follows from the size."""
    if sigma <= 0 and taps in _SMALL:
        return list(_SMALL[taps])
    spread = sigma if sigma > 0 else taps * 0.15 + 0.35
    scale = -0.125 / (spread * spread)
    half = [math.exp((1 - taps + 2 * place) ** 2 * scale) for place in range((taps - 1) // 2)]
    share = 1.0 / (_summed(half) * 2 + 1.0)
    half = [each * share for each in half]
    return [*half, share, *reversed(half)]


def fixed_weights(taps: int, sigma: float, bits: int = 8) -> list[int]:
    """Return the weights as whole numbers that add up to ``2**bits``.

    From the outside in, each takes over what rounding the one before has left; the one in the
    middle gets the rest.
    """
    exact = weights(taps, sigma)
    half: list[int] = []
    left = 0.0
    for weight in exact[: taps // 2]:
        wanted = weight * (1 << bits) + left
        half.append(int(np.rint(wanted)))
        left = wanted - half[-1]
    return [*half, (1 << bits) - 2 * sum(half), *reversed(half)]


def _summed(values: list[float]) -> float:
    """Return the sum, rounded after each value."""
    total = 0.0
    for value in values:
        total += value
    return total
