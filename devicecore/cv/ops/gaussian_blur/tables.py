"""The weights of `cv2.GaussianBlur` in OpenCV's fixed point."""

from __future__ import annotations

import math
from functools import lru_cache

# Without a sigma, small kernels are these, in parts of 256.
_SMALL = {
    1: (256,),
    3: (64, 128, 64),
    5: (16, 64, 96, 64, 16),
    7: (8, 28, 56, 72, 56, 28, 8),
    9: (4, 13, 30, 51, 60, 51, 30, 13, 4),
}


def automatic_size(sigma: float, reach: int) -> int:
    """Return how many weights a kernel has whose size was not given.

    Args:
        sigma: More than 0.
        reach: How many sigmas lie on each side, which depends on the type of an image.
    """
    return round(sigma * reach * 2 + 1) | 1


@lru_cache(256)
def fixed_weights(size: int, sigma: float, bits: int) -> tuple[int, ...]:
    """Return weights that add up to ``2**bits``.

    Args:
        size: How many; odd.
        sigma: Of the bell; 0 for one that fits the size.
        bits: After the point.
    """
    exact = _weights(size, sigma)
    half: list[int] = []
    error = 0.0
    for weight in exact[: size // 2]:  # what rounding leaves over goes to the next one inwards
        wanted = weight * (1 << bits) + error
        half.append(round(wanted))
        error = wanted - half[-1]
    return (*half, (1 << bits) - 2 * sum(half), *reversed(half))


def _weights(size: int, sigma: float) -> list[float]:
    if sigma <= 0 and size in _SMALL:
        return [each / 256 for each in _SMALL[size]]
    used = sigma if sigma > 0 else size * 0.15 + 0.35
    scale = -0.125 / (used * used)
    half = [math.exp((1 - size + 2 * place) ** 2 * scale) for place in range((size - 1) // 2)]
    total = 0.0
    for each in half:
        total += each
    share = 1.0 / (total * 2 + 1.0)
    side = [each * share for each in half]
    return [*side, share, *reversed(side)]
