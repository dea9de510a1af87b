"""Automatic thresholds of a histogram: Otsu's method and the triangle method."""

from __future__ import annotations

import torch

from devicecore.cv.torch_support.float_pairs import of_integers

Tensor = torch.Tensor


def otsu(counts: Tensor) -> Tensor:
    """Return the value that parts the pixels of each image best: the first one, where two do so.

    Args:
        counts: Histograms, of shape (images, bins).
    """
    values = torch.arange(counts.shape[1], device=counts.device)
    below = counts.cumsum(1)
    weight = (counts * values).cumsum(1).double()
    pixels, total = below[:, -1:].double(), weight[:, -1:]
    below = below.double()
    off = weight * pixels - total * below
    parts = below * (pixels - below)
    apart = off * off / parts
    return torch.where(parts > 0, apart, 0.0).argmax(1)


def otsu_without_float64(counts: Tensor) -> Tensor:
    """Return the same, where sums of up to 48 bits are float pairs."""
    values = torch.arange(counts.shape[1], device=counts.device)
    below = counts.cumsum(1)
    weight = (counts * values).cumsum(1)
    pixels, total = below[:, -1:], weight[:, -1:]
    # Differences of means from the mean of all, which stay small.
    means = of_integers(weight) / of_integers(below.clamp(min=1))
    off = means - of_integers(total) / of_integers(pixels)
    share = of_integers(below) / of_integers((pixels - below).clamp(min=1))
    apart = (off.squared() * share).float()
    return torch.where((below > 0) & (below < pixels), apart, 0.0).argmax(1)


def triangle(counts: Tensor) -> Tensor:
    """Return the value that is farthest below the line from the peak to the farther end.

    Args:
        counts: Histograms, of shape (images, bins).
    """
    last = counts.shape[1] - 1
    values = torch.arange(last + 1, device=counts.device)
    is_there = (counts > 0).int()
    left = (is_there.argmax(1, keepdim=True) - 1).clamp_(min=0)
    right = (last - is_there.flip(1).argmax(1, keepdim=True) + 1).clamp_(max=last)
    peak, most = counts.argmax(1, keepdim=True), counts.amax(1, keepdim=True)
    # The line goes to the end that is farther away; it is always the left one after this.
    is_turned = peak - left < right - peak
    counts = torch.where(is_turned, counts.flip(1), counts)
    left = torch.where(is_turned, last - right, left)
    peak = torch.where(is_turned, last - peak, peak)
    depth = most * values + (left - peak) * counts
    depth = torch.where((values > left) & (values <= peak), depth, 0)
    deepest = depth.argmax(1, keepdim=True)
    level = torch.where(depth.gather(1, deepest) > 0, deepest, left) - 1
    return torch.where(is_turned, last - level, level)[:, 0]
