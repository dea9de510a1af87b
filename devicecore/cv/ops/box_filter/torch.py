"""`cv2.blur` and `cv2.boxFilter` on torch tensors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import cv2
import numpy as np

from devicecore.cv.operation import operation
from devicecore.cv.ops.box_filter.box_sums import box_plan
from devicecore.cv.result_rules import of_depth
from devicecore.cv.torch_support.sample_images import sample_images
from devicecore.cv.torch_support.windows import FILTER_BORDERS, window

if TYPE_CHECKING:
    from collections.abc import Iterator

    import torch

    from devicecore.cv.image import Image
    from devicecore.cv.plan import Plan

    Tensor = torch.Tensor


def box_examples() -> Iterator[tuple[tuple[Any, ...], dict[str, Any]]]:
    """Yield small calls of every kind of ``cv2.blur``."""
    for image in (*sample_images(), np.random.default_rng(6).random((13, 19, 3), np.float32)):
        for size in ((3, 3), (4, 2), (8, 8), (17, 16)):
            for border in sorted(FILTER_BORDERS):
                yield (image, size), {"borderType": border}


def typed_box_examples() -> Iterator[tuple[tuple[Any, ...], dict[str, Any]]]:
    """Yield small calls of every kind of ``cv2.boxFilter``."""
    for (image, size), named in box_examples():
        for depth in (-1, cv2.CV_32F):
            for normalize in (True, False):
                yield (image, depth, size), {**named, "normalize": normalize}


@operation("src", examples=box_examples)
def blur(
    src: Image,
    ksize: Any,
    dst: Any = None,  # noqa: ARG001 - whoever calls kernels fills it
    anchor: Any = (-1, -1),
    borderType: int = cv2.BORDER_DEFAULT,
) -> Plan | None:
    """Plan one call of ``cv2.blur``."""
    return box_plan(src, -1, window(ksize, anchor), borderType, normalize=True)


@operation("src", examples=typed_box_examples, result=of_depth("ddepth"))
def boxFilter(
    src: Image,
    ddepth: int,
    ksize: Any,
    dst: Any = None,  # noqa: ARG001 - whoever calls kernels fills it
    anchor: Any = (-1, -1),
    normalize: Any = True,
    borderType: int = cv2.BORDER_DEFAULT,
) -> Plan | None:
    """Plan one call of ``cv2.boxFilter``."""
    return box_plan(src, ddepth, window(ksize, anchor), borderType, normalize=bool(normalize))
