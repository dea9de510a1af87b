"""Splits pixels into colors in BGR or RGB order, and joins them again."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from devicecore.cv.image import Image

    Tensor = torch.Tensor

# The place of blue in BGR and in RGB; red is in the other of both.
BLUE_FIRST, BLUE_LAST = 0, 2
# What an alpha channel holds that an image did not have.
_OPAQUE = {torch.uint8: 255, torch.uint16: 65535, torch.float32: 1}


def has_colours(src: Image) -> bool:
    """Return whether an image has three colours, and perhaps an alpha channel."""
    return src.channels in {3, 4}


def channels_asked(asked: int, default: int) -> int | None:
    """Return how many channels a coloured result has; None where OpenCV has to judge."""
    if asked <= 0:
        return default
    return asked if asked in {3, 4} else None


def colours(images: Tensor, blue: int, dtype: torch.dtype = torch.int32) -> tuple[Tensor, ...]:
    """Return the blue, the green and the red of each pixel."""
    return tuple(images[..., place].to(dtype) for place in (blue, 1, 2 - blue))


def pixels(found: tuple[Tensor, ...], blue: int, channels: int) -> Tensor:
    """Return pixels of a blue, a green and a red, opaque where there is an alpha channel."""
    planes = [found[blue], found[1], found[2 - blue]]
    if channels == 4:
        planes.append(torch.full_like(planes[0], _OPAQUE[planes[0].dtype]))
    return torch.stack(planes, -1)


def as_bytes(x: Tensor) -> Tensor:
    """Return whole numbers as bytes, cut to what they hold."""
    return x.clamp_(0, 255).to(torch.uint8)


def lookup_rows(table: Tensor, index: Tensor) -> Tensor:
    """Return the rows of a table that whole numbers of any axes name."""
    return table.index_select(0, index.reshape(-1)).view(*index.shape, *table.shape[1:])
