"""`PreprocessRecipe`: what `preprocess` does with every image, whatever its size."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np
import torch
from attrs import frozen

from devicecore.cv.table import Table

if TYPE_CHECKING:
    from devicecore.cv.ops.preprocess.tables import Mode

Layout = Literal["NCHW", "NHWC"]


@frozen(eq=False)
class PreprocessRecipe:
    """What is done with every image.

    Attributes:
        canvas: Width and height of the result.
        mode: How an image is placed on it.
        border: The byte around it in a letterbox.
        is_swapped: Whether the order of the channels is turned round.
        blur: Taps of the Gaussian kernel along rows and columns, or None.
        values: For each channel, what each of the 256 bytes becomes.
        layout: The order of the axes of the result.
    """

    canvas: tuple[int, int]
    mode: Mode
    border: int
    is_swapped: bool
    blur: tuple[int, int] | None
    values: Table
    layout: Layout


def normalized_bytes(
    mean: float | tuple[float, ...],
    std: float | tuple[float, ...],
    channels: int,
    dtype: torch.dtype,
) -> Table:
    """Return ``(byte / 255 - mean) / std`` of each byte in float32, of shape (channels, 256).

    A table, since there are 256 bytes only: no kernel has to divide as numpy does.
    """
    bytes_ = np.arange(256, dtype=np.float32) / np.float32(255)
    shape = (channels, 1)
    offset = np.broadcast_to(np.asarray(mean, np.float32).reshape(-1, 1), shape)
    divisor = np.broadcast_to(np.asarray(std, np.float32).reshape(-1, 1), shape)
    return Table(torch.from_numpy((bytes_ - offset) / divisor).to(dtype))
