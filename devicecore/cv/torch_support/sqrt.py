"""`rounded_sqrt`: float64 square roots rounded once; torch's on the CPU are not."""

from __future__ import annotations

import torch

# Splits a float64 into two halves, whose products are exact.
_SPLITTER = float((1 << 27) + 1)


def rounded_sqrt(x: torch.Tensor) -> torch.Tensor:
    """Return the square roots of float64 values that are not negative."""
    about = x.sqrt()
    scaled = about * _SPLITTER
    high = scaled - (scaled - about)
    low = about - high
    square = about * about
    lost = ((high * high - square) + high * low * 2) + low * low
    # How far the square is off, exactly; so this step ends at the nearest value.
    off = (x - square) - lost
    return about + off / torch.where(about == 0, 1.0, about * 2)
