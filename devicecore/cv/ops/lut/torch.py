"""`cv2.LUT` and `cv2.applyColorMap` on torch tensors: lookup tables for uint8."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import cv2
import numpy as np

from devicecore.cv.arguments import whole
from devicecore.cv.native import original
from devicecore.cv.operation import operation
from devicecore.cv.ops.color import linear
from devicecore.cv.plan import Plan
from devicecore.cv.result_rules import like
from devicecore.cv.table import Table
from devicecore.cv.torch_support.dtypes import MOVABLE, unsigned_as_signed
from devicecore.cv.torch_support.pixels import lookup_rows

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    import torch

    from devicecore.cv.image import Image
    from devicecore.cv.result_rules import ArrayInfo

    Run = Callable[[torch.Tensor], torch.Tensor]

_ENTRIES = 256


def examples() -> Iterator[tuple[tuple[Any, ...], dict[str, Any]]]:
    """Yield a call of each type of table, shared by the channels and not."""
    chance = np.random.default_rng(7)
    image = chance.integers(0, 256, (6, 9, 3), np.uint8)
    for dtype in sorted(MOVABLE):
        yield (image, chance.integers(0, 100, 256).astype(dtype)), {}
        yield (image, chance.integers(0, 100, (1, 256, 3)).astype(dtype)), {}
    yield (image[..., 0], chance.integers(0, 256, 256, np.uint8)), {}


def _colour_maps() -> Iterator[tuple[tuple[Any, ...], dict[str, Any]]]:
    image = np.arange(240, dtype=np.uint8).reshape(8, 10, 3)
    for number in (cv2.COLORMAP_AUTUMN, cv2.COLORMAP_JET):
        yield (image, number), {}
        yield (image[..., 0], number), {}
    yield (image[..., 0], np.arange(256, dtype=np.uint8)[:, None]), {}


def _of_table(given: Mapping[str, Any]) -> tuple[ArrayInfo, ...]:
    return (like(given["src"], dtype=given["lut"].dtype),)


def _of_colors(given: Mapping[str, Any]) -> tuple[ArrayInfo, ...]:
    colors = given["userColor"] if given["colormap"] is None else given["colormap"]
    is_gray = isinstance(colors, np.ndarray) and (colors.ndim == 2 or colors.shape[2:] == (1,))
    return (like(given["src"], channels=1 if is_gray else 3),)


@operation("src", examples=examples, result=_of_table)
def LUT(
    src: Image,
    lut: Any,
    dst: Any = None,  # noqa: ARG001 - whoever calls kernels fills it
) -> Plan | None:
    """Plan one call of ``cv2.LUT``."""
    if src.dtype != "uint8" or not src.pixels or not isinstance(lut, np.ndarray):
        return None
    # Of two axes, all of it is one table; a third one is the channels.
    channels = lut.shape[2] if lut.ndim == 3 else 1
    if lut.ndim > 3 or lut.size != _ENTRIES * channels or lut.dtype.name not in MOVABLE:
        return None
    if channels not in {1, src.channels} or src.lacks(lut.dtype.name):
        return None
    return Plan(_read(lut.reshape(_ENTRIES, channels)))


@operation("src", examples=_colour_maps, result=_of_colors)
def applyColorMap(
    src: Image,
    colormap: Any = None,
    dst: Any = None,  # noqa: ARG001 - whoever calls kernels fills it
    userColor: Any = None,
) -> Plan | None:
    """Plan one call of ``cv2.applyColorMap``."""
    if src.dtype != "uint8" or not src.pixels or src.channels not in {1, 3}:
        return None
    if (colormap is None) == (userColor is None):
        return None
    every = np.arange(_ENTRIES, dtype=np.uint8)[:, None]
    asked = userColor if colormap is None else colormap
    if not isinstance(asked, np.ndarray):
        asked = whole(asked)
    try:
        colours = original("applyColorMap")(every, asked)
    except cv2.error:  # it is for OpenCV to say
        return None
    coloured = _coloured(colours.reshape(_ENTRIES, -1))
    gray = linear.to_gray(src, 0) if src.channels == 3 else None
    if gray is None:
        return Plan(coloured)
    as_gray = gray.run
    return Plan(lambda images: coloured(as_gray(images)))


def _read(table: np.ndarray[Any, Any]) -> Run:
    """Return what reads each channel from its own column of a table, or all from the only one."""
    entries = Table(np.ascontiguousarray(table.T).reshape(-1))
    starts = Table(np.arange(table.shape[1], dtype=np.int32) * _ENTRIES)

    def run(images: torch.Tensor) -> torch.Tensor:
        values = entries.on(images)
        index = images.int()
        if len(values) > _ENTRIES:
            index += starts.on(images)
        return lookup_rows(unsigned_as_signed(values), index).view(values.dtype)

    return run


def _coloured(colours: np.ndarray[Any, Any]) -> Run:
    table = Table(np.ascontiguousarray(colours))

    def run(images: torch.Tensor) -> torch.Tensor:
        return lookup_rows(table.on(images), images[..., 0].int())

    return run
