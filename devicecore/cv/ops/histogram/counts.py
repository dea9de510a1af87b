"""Histogram counts: how often images have each value."""

from __future__ import annotations

import torch


def counts(images: torch.Tensor, bins: int, weights: torch.Tensor | None = None) -> torch.Tensor:
    """Return how often each image has each value, of shape (images, bins) and type int64.

    Args:
        images: Whole numbers below *bins*, of any axes after the first one.
        bins: How many values there may be.
        weights: How often each pixel counts, as int64; of a shape that can be that of *images*.
    """
    flat = images.reshape(len(images), -1).long()
    result = torch.zeros((len(images), bins), dtype=torch.int64, device=images.device)
    if weights is None:
        return result.scatter_add_(1, flat, torch.ones_like(flat))
    return result.scatter_add_(1, flat, weights.expand(images.shape).reshape(flat.shape))
