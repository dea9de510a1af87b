"""`cv2.remap` by a Triton kernel: bytes, by maps of float32, where OpenCV fuses."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import cv2
import numpy as np
import torch

from devicecore.cv.operation import Operation
from devicecore.cv.ops.remap import kernels
from devicecore.cv.ops.remap import torch as remap_torch
from devicecore.cv.ops.warp.triton import images_together, sampling
from devicecore.cv.plan import Plan
from devicecore.cv.triton_support.alignment import GROUP, is_native, readable
from devicecore.cv.triton_support.launch import Launch

if TYPE_CHECKING:
    from collections.abc import Iterator

    from devicecore.cv.image import Image

_BLOCK, _WARPS = 128, 1
_LARGEST = 1 << 31


def _examples() -> Iterator[tuple[tuple[Any, ...], dict[str, Any]]]:
    yield from remap_torch.remap.examples()
    chance = np.random.default_rng(8)
    maps = chance.uniform(-3, 20, (9, 21, 2)).astype(np.float32)
    for channels in (1, 4):
        image = chance.integers(0, 256, (14, 19, channels), np.uint8)
        yield (image, maps, None, cv2.INTER_LINEAR), {"borderValue": (9, 8, 7, 6)}


@functools.wraps(remap_torch.remap.planner)
def _plan(
    src: Image,
    map1: Image,
    map2: Image | None,
    interpolation: int,
    dst: Any = None,
    borderMode: int = cv2.BORDER_CONSTANT,
    borderValue: Any = None,
    hint: int = 0,
) -> Plan | None:
    plan = remap_torch.remap.planner(
        src, map1, map2, interpolation, dst, borderMode, borderValue, hint
    )
    relative = interpolation & remap_torch.RELATIVE
    read = sampling(src, interpolation ^ relative, borderMode, borderValue)
    if plan is None or map1.dtype != "float32":  # others are in fixed point
        return None
    if read is None or map1.pixels * src.channels >= _LARGEST:
        return None
    value, constants = read
    constants = {
        "STEP": map1.channels,
        "RELATIVE": bool(relative),
        **constants,
        "IN_GROUPS": map1.pixels % GROUP == 0,
    }
    pixels, width = map1.pixels, map1.width

    @functools.lru_cache(maxsize=16)
    def launch(count: int, step: int, device: torch.device) -> Launch:
        source_bytes = src.pixels * src.channels
        together = images_together(count) if step == 0 else 1
        numbers = (src.height, src.width, source_bytes, pixels, width, value, step)
        rest = (*numbers, count)
        grid = (-(-pixels // _BLOCK), -(-count // together), 1)
        own = {"NATIVE": is_native(device), "WARPS": _WARPS, "IMAGES": together, "BLOCK": _BLOCK}
        return Launch(kernels.remap, grid, rest, constants | own, _WARPS)

    def run(
        images: torch.Tensor, first: torch.Tensor, second: torch.Tensor | None = None
    ) -> torch.Tensor:
        count = images.shape[0]
        columns = first.contiguous()
        rows = columns if second is None else second.expand(first.shape).contiguous()
        shape = (count, map1.height, width, src.channels)
        result = torch.empty(shape, dtype=torch.uint8, device=images.device)
        step = 0 if first.shape[0] == 1 else pixels
        launch(count, step, images.device)(readable(images), columns, rows, result)
        return result

    return Plan(run)


remap: Operation = Operation("remap", "triton", _plan, remap_torch.remap.images, _examples)
