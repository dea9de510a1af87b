"""`cv2.remap` on torch tensors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import cv2
import numpy as np
import torch

from devicecore.cv.arguments import constant, whole
from devicecore.cv.border_index import BORDERS
from devicecore.cv.image import Image
from devicecore.cv.operation import operation
from devicecore.cv.plan import Plan
from devicecore.cv.result_rules import scaled_to
from devicecore.cv.torch_support.sampling import LARGEST, PARTS, Sampler, sampler

if TYPE_CHECKING:
    from collections.abc import Iterator

    Tensor = torch.Tensor

_ACCURATE = frozenset({0, 1})  # OpenCV's ALGO_HINT_DEFAULT and ALGO_HINT_ACCURATE
RELATIVE = 32  # OpenCV's WARP_RELATIVE_MAP, which older versions have not


def examples() -> Iterator[tuple[tuple[Any, ...], dict[str, Any]]]:
    """Yield small calls of every kind."""
    chance = np.random.default_rng(5)
    image = chance.integers(0, 256, (14, 19, 3), np.uint8)
    plane = image[..., 0].astype(np.uint16) * 257
    both = chance.uniform(-30, 50, (9, 21, 2)).astype(np.float32)
    across, down = np.ascontiguousarray(both[..., 0]), np.ascontiguousarray(both[..., 1])
    linear, nearest, cubic = cv2.INTER_LINEAR, cv2.INTER_NEAREST, cv2.INTER_CUBIC
    for border in sorted(BORDERS):
        yield (image, across, down, linear), {"borderMode": border}
    for flags in (nearest, cubic, linear | RELATIVE):
        yield (image, both, None, flags), {}
    yield (plane, across, down, linear), {"borderValue": 300}
    yield (image / np.float32(255), across, down, linear), {}
    fixed = cv2.convertMaps(across, down, cv2.CV_16SC2)
    for border in sorted(BORDERS):
        yield (image, *fixed, linear), {"borderMode": border, "borderValue": (9, 80, 200)}


@operation(
    "src", "map1", "map2", examples=examples, result=scaled_to(lambda _, given: given["map1"].size)
)
def remap(
    src: Image,
    map1: Any,
    map2: Any,
    interpolation: int,
    dst: Any = None,  # noqa: ARG001 - whoever calls kernels fills it
    borderMode: int = cv2.BORDER_CONSTANT,
    borderValue: Any = None,
    hint: int = 0,
) -> Plan | None:
    """Plan one call of ``cv2.remap``; its maps hold finite numbers that fit into 32 bits.

    What OpenCV makes of others depends on the place in the row; here they are outside, before the
    first pixel.
    """
    flags = whole(interpolation)
    if isinstance(map1, Image) and map1.dtype == "int16":
        return _with_fixed_maps(src, (map1, map2), flags, whole(borderMode), borderValue)
    read = sampler(src, flags & ~RELATIVE, whole(borderMode), borderValue)
    if read is None or whole(hint) not in _ACCURATE or not _are_maps(map1, map2):
        return None
    is_relative = bool(flags & RELATIVE)

    def run(images: Tensor, first: Tensor, second: Tensor | None = None) -> Tensor:
        x, y = first[..., 0], first[..., 1] if second is None else second[..., 0]
        if is_relative:
            _, height, width = x.shape
            x = x + torch.arange(width, dtype=x.dtype, device=x.device)
            y = y + torch.arange(height, dtype=y.dtype, device=y.device)[:, None]
        return read.read(images, x, y)

    return Plan(run)


def _with_fixed_maps(
    src: Image, maps: tuple[Image, Image | None], flags: int, border: int, value: Any
) -> Plan | None:
    """Plan a call whose maps hold whole places, and numbers of parts of a pixel."""
    first, second = maps
    if second is None or (first.channels, second.channels) != (2, 1) or first.size != second.size:
        return None
    if second.dtype != "uint16" or flags != cv2.INTER_LINEAR or not first.pixels:
        return None
    read = fixed_sampler(src, border, value)
    if read is None or max(first.size) > LARGEST:
        return None

    def run(images: Tensor, places: Tensor, parts: Tensor) -> Tensor:
        left, top = places.to(torch.int32).unbind(3)
        part = parts[..., 0].to(torch.int32) % (PARTS * PARTS)
        return read.read_parts(images, left, top, part % PARTS, part // PARTS)

    return Plan(run)


def fixed_sampler(src: Image, border: int, value: Any) -> Sampler | None:
    """Return what reads images of bytes at places in fixed point, or None where that is OpenCV's.

    Args:
        src: The image.
        border: OpenCV's number of the border.
        value: The constant border's value.
    """
    if src.dtype != "uint8" or border not in BORDERS or not 0 < max(src.size) <= LARGEST:
        return None
    return Sampler(cv2.INTER_LINEAR, border, constant(value, src.channels, src.dtype), False)


def _are_maps(first: Image, second: Image | None) -> bool:
    """Return whether there is a column and a row in float32 for each pixel of a result."""
    if first.dtype != "float32" or not first.pixels or max(first.size) > LARGEST:
        return False
    if second is None:
        return first.channels == 2
    return (
        second.dtype == "float32"
        and (first.channels, second.channels) == (1, 1)
        and (first.size == second.size)
    )
