"""`cv2.medianBlur` on torch tensors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import cv2
import torch

from devicecore.cv.operation import operation
from devicecore.cv.plan import Plan
from devicecore.cv.torch_support.sample_images import sample_images
from devicecore.cv.torch_support.windows import Window, window

if TYPE_CHECKING:
    from collections.abc import Iterator

    from devicecore.cv.image import Image

    Tensor = torch.Tensor

_MEDIAN_TYPES = frozenset({"uint8", "uint16", "int16", "float32"})
# Larger windows of medians are for bytes, and of so many channels.
_SMALL_MEDIAN = 5
_MEDIAN_CHANNELS = frozenset({1, 3, 4})
_LARGEST_MEDIAN = 31


def median_examples() -> Iterator[tuple[tuple[Any, ...], dict[str, Any]]]:
    """Yield small calls of every kind of ``cv2.medianBlur``."""
    for image in sample_images():
        for size in (3, 5, 7):
            yield (image, size), {}


@operation("src", examples=median_examples)
def medianBlur(
    src: Image,
    ksize: int,
    dst: Any = None,  # noqa: ARG001 - whoever calls kernels fills it
) -> Plan | None:
    """Plan one call of ``cv2.medianBlur``."""
    if src.dtype not in _MEDIAN_TYPES or src.pixels == 0:
        return None
    if type(ksize) is not int or ksize % 2 == 0 or not 0 < ksize <= _LARGEST_MEDIAN:
        return None
    if ksize > _SMALL_MEDIAN and not (src.dtype == "uint8" and src.channels in _MEDIAN_CHANNELS):
        return None
    if ksize == 1:
        return Plan(torch.clone)
    area = window((ksize, ksize))
    return Plan(lambda images: torch.cat([_medians(each, area) for each in images.split(1)]))


def _medians(image: Tensor, area: Window) -> Tensor:
    """Return the medians of one image; they take memory for a window at each pixel."""
    bordered = area.around(image, cv2.BORDER_REPLICATE)
    if bordered.dtype is torch.uint16:
        bordered = bordered.to(torch.int32)
    windows = bordered.unfold(1, area.height, 1).unfold(2, area.width, 1)
    return windows.flatten(-2).median(-1).values.to(image.dtype)
