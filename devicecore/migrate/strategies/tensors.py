"""Tensor helpers that several strategies share."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import Any

import numpy as np
import torch


def scipy(module: str) -> Any:
    """Return a module of scipy, which has no types."""
    return import_module(f"scipy.{module}")


@cache
def torch_type(dtype: Any) -> torch.dtype:
    """Return torch's name of a type of numpy that both have."""
    return torch.from_numpy(np.empty(0, dtype)).dtype


def as_floats(tensor: Any) -> Any:
    """Return a tensor of numbers with fractions: integers become doubles, as numpy has them."""
    is_float = tensor.is_floating_point() or tensor.is_complex()
    return tensor if is_float else tensor.double()


def real_inverse(spectrum: Any, length: int, dim: int = -1) -> Any:
    """Return a real signal of *length* of half of its spectrum.

    Whatever library computes it, the imaginary parts that a real signal has not count for nothing.
    """
    spectrum = spectrum.movedim(dim, -1).clone()
    for place in {0, length // 2} if length % 2 == 0 else {0}:
        if place < spectrum.shape[-1]:
            spectrum[..., place].imag = 0
    return torch.fft.irfft(spectrum, n=length).movedim(-1, dim)
