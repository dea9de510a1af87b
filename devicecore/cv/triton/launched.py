"""`launched`: the plan of a call that is one launch of a kernel, from images to one result."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

import torch

from devicecore.cv.plan import Plan
from devicecore.cv.triton.grouping import GROUP, WORD, readable, writable

if TYPE_CHECKING:
    from collections.abc import Callable

    from devicecore.cv.image import Image
    from devicecore.cv.triton.launching import Launch
    from devicecore.kernels import Exactness

_MOST_LAUNCHES = 16


def launched(
    src: Image,
    shape: tuple[int, int, int],
    launch: Callable[[int, torch.device], Launch],
    *,
    dtype: torch.dtype = torch.uint8,
    promise: Exactness = "exact",
) -> Plan:
    """Return the plan of a call.

    Args:
        src: The images, all of one kind if there are several. A kernel may read, and write, whole
            groups of four pixels, of which the last ones are not there.
        shape: Height, width and channels of the result.
        launch: Returns the launch for a number of images on a device. It is given the images, and
            then the result.
        dtype: The type of the result.
        promise: How near it is to OpenCV's.
    """
    height, width, channels = shape
    # As OpenCV has it: planes have no axis for their channel.
    single = (height, width) if channels == 1 else shape
    strides = (width, 1) if channels == 1 else (width * channels, channels, 1)
    launches = functools.lru_cache(_MOST_LAUNCHES)(launch)

    def run(*images: torch.Tensor) -> torch.Tensor:
        first = images[0]
        memory, found = writable((first.shape[0], *shape), first.device, dtype)
        sources = [readable(each.expand(first.shape)) for each in images]
        launches(first.shape[0], first.device)(*sources, memory)
        return found

    def quick(*images: torch.Tensor) -> torch.Tensor | None:
        for image in images:
            if image.data_ptr() % WORD or not image.is_contiguous():
                return None
        device = images[0].device
        found = torch.empty_strided(single, strides, dtype=dtype, device=device)
        launches(1, device)(*images, found)
        return found

    has_groups = src.pixels % GROUP == 0 and height * width % GROUP == 0
    return Plan(run, promise, quick=quick if has_groups else None)
