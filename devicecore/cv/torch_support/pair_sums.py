"""Means, deviations and norms in `FloatPair`, for devices without float64."""

from __future__ import annotations

from typing import TYPE_CHECKING

import cv2
import torch

from devicecore.cv.torch_support.error_free import two_square, two_sum
from devicecore.cv.torch_support.float_pairs import FloatPair, as_pair, of_integers

if TYPE_CHECKING:
    from collections.abc import Callable

    Tensor = torch.Tensor


def channel_means(images: Tensor, wanted: Tensor | None = None) -> FloatPair:
    """Return the mean of each channel of each image; that of no pixels is 0.

    Args:
        images: Of shape (images, height, width, channels).
        wanted: A mask.
    """
    return _means(_values(images), _is_wanted(images, wanted))


def mean_and_deviation(images: Tensor, wanted: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """Return the mean and the standard deviation of each channel, as float32 columns.

    Args:
        images: Of shape (images, height, width, channels).
        wanted: A mask.
    """
    values, is_wanted = _values(images), _is_wanted(images, wanted)
    means = _means(values, is_wanted)
    spread = _means(_squares(values), is_wanted) - means.squared()
    return means.float()[..., None], spread.root()[..., None]


def norm_without_float64(kind: int, *, has_mask: bool) -> Callable[..., Tensor]:
    """Return what computes ``cv2.norm``: whole numbers of integers, but for roots, or float32.

    Args:
        kind: OpenCV's number of the norm.
        has_mask: Whether the last image is a mask.
    """

    def run(images: Tensor, *more: Tensor) -> Tensor:
        others, off = more[: len(more) - has_mask], as_pair(_values(images))
        if others:
            off = _difference(_values(images), _values(others[0]))
        if has_mask:
            is_wanted = more[-1] != 0
            off = off.each(lambda x: x * is_wanted)
        is_float = images.is_floating_point()
        if kind == cv2.NORM_INF:
            return off.high.abs().amax((1, 2, 3))
        if kind == cv2.NORM_L1:
            if not is_float:
                return off.high.abs().sum((1, 2, 3), dtype=torch.int64)
            sizes = off.each(lambda x: x * off.high.sign())
            return _added(sizes).float()
        squares = off.squared() if is_float else _squares(off.high)
        return _added(squares).root()

    return run


def _difference(one: Tensor, other: Tensor) -> FloatPair:
    if one.is_floating_point():
        return FloatPair(*two_sum(one, -other))
    return as_pair(one - other)


def _values(images: Tensor) -> Tensor:
    return images if images.is_floating_point() else images.to(torch.int32)


def _squares(values: Tensor) -> Tensor | FloatPair:
    if values.is_floating_point():
        return FloatPair(*two_square(values))
    return values.to(torch.int64).square()


def _is_wanted(images: Tensor, wanted: Tensor | None) -> Tensor:
    """Return a mask that has a pixel for each, of shape (images, height, width, 1)."""
    if wanted is None:
        return torch.ones((1, *images.shape[1:3], 1), dtype=torch.bool, device=images.device)
    return wanted != 0


def _means(values: Tensor | FloatPair, is_wanted: Tensor) -> FloatPair:
    count = is_wanted.sum((1, 2), dtype=torch.int64)
    if isinstance(values, torch.Tensor) and values.is_floating_point():
        values = as_pair(values)
    if isinstance(values, FloatPair):
        sums = values.each(lambda x: torch.where(is_wanted, x, 0.0)).summed()
    else:
        sums = of_integers((values * is_wanted).sum((1, 2), dtype=torch.int64))
    return sums / of_integers(count.clamp(min=1))


def _added(values: Tensor | FloatPair) -> FloatPair:
    """Return the sum of each image."""
    if isinstance(values, FloatPair):
        return values.each(lambda x: x.flatten(1)[..., None]).summed().each(lambda x: x[:, 0])
    return of_integers(values.sum((1, 2, 3), dtype=torch.int64))
