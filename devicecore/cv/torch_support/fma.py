"""Fused multiply-add of float32, rounded once on every device."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import torch

from devicecore.cv.torch_support.error_free import multiplied_and_added

if TYPE_CHECKING:
    from devicecore.cv.image import Image

Tensor = torch.Tensor
MultiplyAdd = Callable[[Tensor, "Tensor | float", "Tensor | float"], Tensor]


def multiply_add(src: Image, *, is_fused: bool) -> MultiplyAdd:
    """Return what computes ``a * b + c`` of float32 on the device of an image.

    Args:
        src: The image.
        is_fused: Whether it is rounded once, as with FMA, or twice.
    """
    if not is_fused:
        return multiply_then_add
    return fused_multiply_add if src.has_float64 else multiplied_and_added


def multiply_then_add(a: Tensor, b: Tensor | float, c: Tensor | float) -> Tensor:
    """Return ``a * b + c`` of float32, rounded twice, as without AVX2."""
    return a * b + c


def fused_multiply_add(a: Tensor, b: Tensor | float, c: Tensor | float) -> Tensor:
    """Return ``a * b + c``, rounded once, on a device that has float64.

    Args:
        a: float32.
        b: float32, or a number that is one.
        c: The same.
    """
    product = a.double() * b  # exact in float64
    if isinstance(b, torch.Tensor):
        product = a.double() * b.double()
    other = c.double() if isinstance(c, torch.Tensor) else c
    total = product + other
    # What that sum lost. Where it lost something, an odd last bit keeps the second rounding, to
    # float32, from taking it for a tie.
    share = total - product
    lost = (product - (total - share)) + (other - share)
    bits = total.view(torch.int64)
    is_even_and_inexact = ((bits & 1) == 0) & ((lost < 0) | (lost > 0))
    towards = torch.where((lost > 0) == (total > 0), 1, -1)
    return torch.where(is_even_and_inexact, bits + towards, bits).view(torch.float64).float()
