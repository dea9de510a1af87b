"""Bayer demosaicing by bilinear interpolation."""

from __future__ import annotations

from typing import TYPE_CHECKING

import cv2
import torch

from devicecore.cv.plan import Plan
from devicecore.cv.torch_support.padding import pad_images

if TYPE_CHECKING:
    from collections.abc import Iterator

    from devicecore.cv.image import Image

    Tensor = torch.Tensor

# By OpenCV's name, which is that of the second row's second and third pixel: whether that row
# starts with green, and whether the other colour of the first row's first pixel is blue.
PATTERNS = {"BG": (False, False), "GB": (True, False), "RG": (False, True), "GR": (True, True)}
_OPAQUE = {"uint8": 255, "uint16": 65535}
# The parts of blue, green and red in gray, and the bits after the point.
_BLUE, _GREEN, _RED, _BITS = 1868, 9617, 4899, 14


def to_colours(src: Image, asked: int, *, pattern: str, channels: int) -> Plan | None:
    """Plan a conversion to BGR, with or without alpha.

    Args:
        src: The images.
        asked: How many channels the caller asks for; 0 for what the code says.
        pattern: One of `PATTERNS`.
        channels: Three, or four.
    """
    if not _is_pattern(src) or asked:
        return None
    opaque = _OPAQUE[src.dtype]

    def run(images: Tensor) -> Tensor:
        x = images[..., 0].to(torch.int32)
        count, height, width = x.shape
        result = x.new_full((count, height - 2, width - 2, channels), opaque)
        for part, (rows, columns), is_green, first in _parts(x, pattern):
            middle, beside, above, corners = part
            if is_green:
                colours = _half(above), middle, _half(beside)
            else:
                colours = _quarter(corners), _quarter(beside + above), middle
            for channel, colour in zip((first, 1, 2 - first), colours, strict=True):
                result[:, rows::2, columns::2, channel] = colour
        return _bordered(result.to(images.dtype))

    return Plan(run)


def to_gray(src: Image, *, pattern: str) -> Plan | None:
    """Plan a conversion to gray.

    Args:
        src: The images.
        pattern: One of `PATTERNS`.
    """
    if not _is_pattern(src):
        return None

    def run(images: Tensor) -> Tensor:
        x = images[..., 0].to(torch.int64)
        count, height, width = x.shape
        result = x.new_empty((count, height - 2, width - 2, 1))
        for part, (rows, columns), is_green, first in _parts(x, pattern):
            middle, beside, above, corners = part
            one, other = (_BLUE, _RED) if first == 0 else (_RED, _BLUE)
            if is_green:
                total, bits = above * one + beside * other + middle * (2 * _GREEN), _BITS + 1
            else:
                total = corners * one + (beside + above) * _GREEN + middle * (4 * other)
                bits = _BITS + 2
            result[:, rows::2, columns::2, 0] = (total + (1 << (bits - 1))).bitwise_right_shift_(
                bits
            )
        return _bordered(result.to(images.dtype))

    return Plan(run)


def _is_pattern(src: Image) -> bool:
    return src.dtype in _OPAQUE and src.channels == 1 and min(src.size) > 2


def _parts(
    x: Tensor, pattern: str
) -> Iterator[tuple[tuple[Tensor, Tensor, Tensor, Tensor], tuple[int, int], bool, int]]:
    """Yield each of the four kinds of pixels that have neighbours on all sides.

    Yields:
        The pixels, and the sums of those beside them, above and below them, and at their corners;
        the first row and column of them; whether they are green; and the channel of the colour
        that they have above and below them, or at their corners.
    """
    _, height, width = x.shape
    starts_green, is_blue = PATTERNS[pattern]

    def shifted(down: int, across: int) -> Tensor:
        return x[:, 1 + down : height - 1 + down, 1 + across : width - 1 + across]

    beside = shifted(0, -1) + shifted(0, 1)
    above = shifted(-1, 0) + shifted(1, 0)
    corners = shifted(-1, -1) + shifted(-1, 1) + shifted(1, -1) + shifted(1, 1)
    for row in (0, 1):
        for column in (0, 1):
            parts = (shifted(0, 0), beside, above, corners)
            one, two, three, four = (each[:, row::2, column::2] for each in parts)
            is_green = starts_green == (row == column)
            first = 0 if is_blue == (row == 0) else 2
            yield (one, two, three, four), (row, column), is_green, first


def _bordered(result: Tensor) -> Tensor:
    return pad_images(result, 1, 1, 1, 1, cv2.BORDER_REPLICATE)


def _half(x: Tensor) -> Tensor:
    return (x + 1).bitwise_right_shift_(1)


def _quarter(x: Tensor) -> Tensor:
    return (x + 2).bitwise_right_shift_(2)
