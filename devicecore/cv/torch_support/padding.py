"""`pad_images`: images with one of OpenCV's borders around them."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import cv2
import torch

from devicecore.cv import border_index
from devicecore.cv.table import Table
from devicecore.cv.torch_support.dtypes import unsigned_as_signed

if TYPE_CHECKING:
    from collections.abc import Sequence

_SIGN_BIT = {torch.uint16: 1 << 15, torch.uint32: 1 << 31}


def pad_images(
    images: torch.Tensor,
    top: int,
    bottom: int,
    left: int,
    right: int,
    border_type: int,
    value: float | Sequence[float] = 0,
) -> torch.Tensor:
    """Return *images* with a border around them.

    Args:
        images: Of shape (images, height, width, channels) and any type.
        top: Rows that are put before the first one.
        bottom: Rows that are put after the last one.
        left: Columns that are put before the first one.
        right: Columns that are put after the last one.
        border_type: One of `border_index.BORDERS`, such as ``cv2.BORDER_REFLECT_101``.
        value: What a constant border consists of, in the images' type: a number, or one for each
            channel.

    Raises:
        ValueError: The border is of another type.
    """
    plain = unsigned_as_signed(images)
    if border_type == cv2.BORDER_CONSTANT:
        result = _surrounded(plain, (top, bottom, left, right), _values(images, value))
    else:
        _, height, width, _ = plain.shape
        result = plain
        if top or bottom:
            result = result.index_select(1, _table(height, top, bottom, border_type).on(plain))
        if left or right:
            result = result.index_select(2, _table(width, left, right, border_type).on(plain))
    return result.view(images.dtype)


@lru_cache(1024)
def _table(length: int, before: int, after: int, border_type: int) -> Table:
    return Table(border_index.border_index(length, before, after, border_type))


def _values(images: torch.Tensor, value: float | Sequence[float]) -> Sequence[float]:
    """Return the number for each channel, with the bits that the signed type has for it."""
    channels = images.shape[3]
    values = [value] * channels if isinstance(value, (int, float)) else list(value)
    sign = _SIGN_BIT.get(images.dtype)
    return values if sign is None else [(int(each) ^ sign) - sign for each in values]


def _surrounded(
    images: torch.Tensor, margins: tuple[int, int, int, int], values: Sequence[float]
) -> torch.Tensor:
    top, bottom, left, right = margins
    count, height, width, channels = images.shape
    shape = (count, height + top + bottom, width + left + right, channels)
    result = images.new_empty(shape)
    if len(set(values)) == 1:
        result.fill_(values[0])
    else:
        for channel, value in enumerate(values):
            result[..., channel] = value
    result[:, top : top + height, left : left + width] = images
    return result
