"""`cv2.calcHist` and `cv2.equalizeHist` on tensors of torch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from devicecore.cv.environment import environment
from devicecore.cv.operation import operation
from devicecore.cv.ops.counting import counts
from devicecore.cv.ops.masks import is_mask
from devicecore.cv.plan import Plan

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from devicecore.cv.image import Image

    Tensor = torch.Tensor

_BINS = 256


def _counts_of_images() -> Iterator[tuple[tuple[Any, ...], dict[str, Any]]]:
    image = np.random.default_rng(8).integers(0, 60, (20, 30, 3), np.uint8)
    yield ([image], [1], None, [_BINS], [0, _BINS]), {}
    plane = np.ascontiguousarray(image[..., 0])
    yield ([plane], [0], None, [_BINS], [0, _BINS]), {}
    yield ([image], [2], plane & 1, [_BINS], [0, _BINS]), {}


def _planes() -> Iterator[tuple[tuple[Any, ...], dict[str, Any]]]:
    yield (np.random.default_rng(9).integers(30, 190, (20, 31), np.uint8),), {}
    yield (np.full((3, 4), 7, np.uint8),), {}


@operation("images", "mask", examples=_counts_of_images)
def calcHist(
    images: Sequence[Image],
    channels: Sequence[int],
    mask: Any,
    histSize: Sequence[int],
    ranges: Sequence[float],
    hist: Any = None,
    accumulate: bool = False,
) -> Plan | None:
    """Plan one call of ``cv2.calcHist``: of one channel of one image of bytes, a bin for each."""
    if not isinstance(images, (list, tuple)) or len(images) != 1:
        return None
    (image,), (channel,) = images, channels
    is_plain = is_mask(mask, image) and hist is None and accumulate is False
    if not is_plain or image.dtype != "uint8" or not image.pixels:
        return None
    if type(channel) is not int or not 0 <= channel < image.channels:
        return None
    if list(histSize) != [_BINS] or list(ranges) != [0, _BINS]:
        return None

    def run(pictures: Tensor, wanted: Tensor | None = None) -> Tensor:
        weights = None if wanted is None else (wanted[..., 0] != 0).long()
        return counts(pictures[..., channel], _BINS, weights).float()

    if environment().version >= (5, 0):
        return Plan(run)
    return Plan(run, finish=lambda found: found[:, None])


@operation("src", examples=_planes)
def equalizeHist(
    src: Image,
    dst: Any = None,  # noqa: ARG001 - whoever calls kernels fills it
) -> Plan | None:
    """Plan one call of ``cv2.equalizeHist``."""
    if src.dtype != "uint8" or src.channels != 1 or not src.pixels:
        return None
    pixels = src.pixels

    def run(images: Tensor) -> Tensor:
        found = counts(images, _BINS)
        darkest = (found > 0).int().argmax(1, keepdim=True)
        others = pixels - found.gather(1, darkest)
        # How many pixels are as dark or darker, but for those of the darkest value.
        darker = found.cumsum(1) - (pixels - others)
        # A number by a tensor would be its reciprocal, rounded, times the number.
        share = torch.full_like(others, 255, dtype=torch.float32).div_(others)
        table = (darker.float() * share).round_().clamp_(0, 255).to(torch.uint8)
        # An image of one value keeps it.
        table = torch.where(others == 0, darkest.to(torch.uint8), table)
        flat = images.reshape(len(images), -1)
        return table.gather(1, flat.long()).view(images.shape)

    return Plan(run)
