"""`cv2.integral` on torch tensors: summed-area tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import cv2
import numpy as np
import torch

from devicecore.cv.operation import operation
from devicecore.cv.plan import Plan
from devicecore.cv.result_rules import like

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from devicecore.cv.image import Image
    from devicecore.cv.result_rules import ArrayInfo

    Tensor = torch.Tensor

# By OpenCV's numbers: the types of sums of bytes, and below what these are not rounded.
_TARGETS = {
    -1: (torch.int32, 1 << 31),
    cv2.CV_32S: (torch.int32, 1 << 31),
    cv2.CV_32F: (torch.float32, 1 << 24),
    cv2.CV_64F: (torch.float64, 1 << 53),
}


def examples() -> Iterator[tuple[tuple[Any, ...], dict[str, Any]]]:
    """Yield small calls of every kind."""
    image = np.random.default_rng(19).integers(0, 256, (13, 19, 3), np.uint8)
    for depth in _TARGETS:
        for picture in (image, np.ascontiguousarray(image[..., 0])):
            yield (picture,), {"sdepth": depth}


def _sums(given: Mapping[str, Any]) -> tuple[ArrayInfo, ...]:
    src = given["src"]
    dtype = _TARGETS[given["sdepth"]][0]
    return (
        like(src, size=(src.width + 1, src.height + 1), dtype=str(dtype).removeprefix("torch.")),
    )


@operation("src", examples=examples, result=_sums)
def integral(
    src: Image,
    sum: Any = None,  # noqa: ARG001 - whoever calls kernels fills it
    sdepth: int = -1,
) -> Plan | None:
    """Plan one call of ``cv2.integral``."""
    if src.dtype != "uint8" or type(sdepth) is not int or sdepth not in _TARGETS:
        return None
    target, limit = _TARGETS[sdepth]
    if src.pixels * 255 >= limit or src.lacks(target):
        return None
    work = torch.int32 if src.pixels * 255 < 1 << 31 else torch.int64

    def run(images: Tensor) -> Tensor:
        count, height, width, channels = images.shape
        shape = (count, height + 1, width + 1, channels)
        result = torch.zeros(shape, dtype=work, device=images.device)
        result[:, 1:, 1:] = images.cumsum(1, dtype=work).cumsum(2, dtype=work)
        return result.to(target)

    return Plan(run)
