"""`cv2.resize` by kernels of Triton."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import cv2
import numpy as np

from devicecore.cv.arguments import whole
from devicecore.cv.operation import operation
from devicecore.cv.ops.resizing import axes_of
from devicecore.cv.plan import Plan
from devicecore.cv.recipe import Recipe
from devicecore.cv.table import Table
from devicecore.cv.triton.preprocessing import CHANNELS, run

if TYPE_CHECKING:
    from collections.abc import Iterator

    from devicecore.cv.image import Image

_UNCHANGED = np.arange(256, dtype=np.uint8)


def examples() -> Iterator[tuple[tuple[Any, ...], dict[str, Any]]]:
    """Yield small calls of every kind."""
    for channels in sorted(CHANNELS):
        image = np.random.default_rng(5).integers(0, 256, (24, 36, channels), np.uint8)
        for target in ((17, 13), (18, 12), (50, 31)):
            yield (image, target), {}


@operation("src", label="triton", examples=examples)
def resize(
    src: Image,
    dsize: Any,
    dst: Any = None,  # noqa: ARG001 - whoever calls kernels fills it
    fx: float = 0,
    fy: float = 0,
    interpolation: int = cv2.INTER_LINEAR,
) -> Plan | None:
    """Plan one call of ``cv2.resize``: bytes with INTER_LINEAR."""
    axes = axes_of(src, dsize, fx, fy)
    if axes is None or src.dtype != "uint8" or src.channels not in CHANNELS:
        return None
    if whole(interpolation) != cv2.INTER_LINEAR or not all(axis.is_whole for axis in axes):
        return None
    columns, rows = axes
    recipe = Recipe(
        canvas=(columns.target, rows.target),
        mode="stretch",
        border=0,
        is_swapped=False,
        blur=None,
        values=Table(np.tile(_UNCHANGED, (src.channels, 1))),
        layout="NHWC",
    )
    return Plan(lambda images: run(images, recipe, images.device))
