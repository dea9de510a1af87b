"""`fused`: a product and a sum of float32 that are rounded once, on every device."""

from __future__ import annotations

import torch


def fused(a: torch.Tensor, b: torch.Tensor | float, c: torch.Tensor | float) -> torch.Tensor:
    """Return ``a * b + c``, rounded once, whether or not a device has an instruction for it.

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
