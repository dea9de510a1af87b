"""`cv2.copyMakeBorder` on torch tensors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import cv2
import numpy as np

from devicecore.cv.arguments import constant, whole
from devicecore.cv.border_index import BORDERS
from devicecore.cv.operation import operation
from devicecore.cv.plan import Plan
from devicecore.cv.result_rules import scaled_to
from devicecore.cv.torch_support.dtypes import MOVABLE
from devicecore.cv.torch_support.padding import pad_images

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from devicecore.cv.image import Image


# Pixels; there is hardly memory for more.
_WIDEST = 1 << 16


def examples() -> Iterator[tuple[tuple[Any, ...], dict[str, Any]]]:
    """Yield small calls of every kind."""
    image = np.arange(60, dtype=np.uint8).reshape(4, 5, 3)
    for border in sorted(BORDERS):
        yield (image, 1, 2, 3, 9, border), {"value": (1.5, 300, 7)}
        yield (image[..., 0].astype(np.uint16), 9, 0, 0, 1, border), {"value": 65535}


def _size(image: Image, given: Mapping[str, Any]) -> tuple[int, int]:
    width = image.width + given["left"] + given["right"]
    return width, image.height + given["top"] + given["bottom"]


@operation("src", examples=examples, result=scaled_to(_size))
def copyMakeBorder(
    src: Image,
    top: int,
    bottom: int,
    left: int,
    right: int,
    borderType: int,
    dst: Any = None,  # noqa: ARG001 - whoever calls kernels fills it
    value: Any = None,
) -> Plan | None:
    """Plan one call of ``cv2.copyMakeBorder``."""
    above, below, before, after = map(whole, (top, bottom, left, right))
    border = whole(borderType) & ~cv2.BORDER_ISOLATED
    if src.dtype not in MOVABLE or border not in BORDERS or not src.pixels:
        return None
    if min(above, below, before, after) < 0 or max(above, below, before, after) > _WIDEST:
        return None
    # Also of other borders, OpenCV reads the value.
    values = constant(value, min(src.channels, 4), src.dtype)
    if border == cv2.BORDER_CONSTANT:
        values = constant(value, src.channels, src.dtype)
    return Plan(lambda images: pad_images(images, above, below, before, after, border, values))
