"""`plan_launch`: the plan of a call that is one kernel launch with one result."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

import torch

from devicecore.cv.plan import Plan
from devicecore.cv.triton_support.alignment import GROUP, WORD, align_images, readable, writable

if TYPE_CHECKING:
    from collections.abc import Callable

    from devicecore.cv.image import Image
    from devicecore.cv.triton_support.launch import Launch
    from devicecore.kernels import Exactness

_MOST_LAUNCHES = 16


def plan_launch(
    src: Image,
    shape: tuple[int, int, int],
    launch: Callable[[int, torch.device], Launch],
    *,
    dtype: torch.dtype = torch.uint8,
    promise: Exactness = "exact",
    alignment: int = WORD,
    in_groups: bool = True,
) -> Plan:
    """Return the plan of a call.

    Args:
        src: The images, all of one kind if there are several.
        shape: Height, width and channels of the result.
        launch: Returns the launch for a number of images on a device. It is given the images, and
            then the result.
        dtype: The type of the result; bytes if the kernel writes whole groups.
        promise: How near it is to OpenCV's.
        alignment: Images begin at a multiple of so many bytes.
        in_groups: Whether the kernel reads and writes whole groups of four pixels, of which the
            last ones may not be there.
    """
    height, width, channels = shape
    # As OpenCV has it: planes have no axis for their channel.
    single = (height, width) if channels == 1 else shape
    strides = (width, 1) if channels == 1 else (width * channels, channels, 1)
    launches = functools.lru_cache(_MOST_LAUNCHES)(launch)

    def run(*images: torch.Tensor) -> torch.Tensor:
        first = images[0]
        whole = (first.shape[0], *shape)
        sources = [align_images(each.expand(first.shape), alignment) for each in images]
        if in_groups:
            memory, result = writable(whole, first.device)
            sources = [readable(each) for each in sources]
        else:
            memory = result = torch.empty(whole, dtype=dtype, device=first.device)
        launches(first.shape[0], first.device)(*sources, memory)
        return result

    def quick(*images: torch.Tensor) -> torch.Tensor | None:
        for image in images:
            if image.data_ptr() % alignment or not image.is_contiguous():
                return None
        device = images[0].device
        result = torch.empty_strided(single, strides, dtype=dtype, device=device)
        launches(1, device)(*images, result)
        return result

    fills_groups = src.pixels % GROUP == 0 and height * width % GROUP == 0
    return Plan(run, promise, quick=quick if fills_groups or not in_groups else None)
