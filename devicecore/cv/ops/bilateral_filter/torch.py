"""`cv2.bilateralFilter` on torch tensors."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import cv2
import numpy as np
import torch

from devicecore.cv.arguments import whole
from devicecore.cv.operation import operation
from devicecore.cv.plan import Plan
from devicecore.cv.table import Table
from devicecore.cv.torch_support.pixels import lookup_rows
from devicecore.cv.torch_support.windows import FILTER_BORDERS, Window

if TYPE_CHECKING:
    from collections.abc import Iterator

    from devicecore.cv.image import Image

    Tensor = torch.Tensor

_CHANNELS = frozenset({1, 3})
# Smaller sigmas leave images as they are.
_LEAST = 1e-6
# A larger window has more neighbours than are worth a step for each.
_LARGEST_RADIUS = 32


def examples() -> Iterator[tuple[tuple[Any, ...], dict[str, Any]]]:
    """Yield small calls of every kind."""
    image = np.random.default_rng(35).integers(0, 256, (17, 21, 3), np.uint8)
    for border in sorted(FILTER_BORDERS):
        yield (image, 5, 75, 40.5), {"borderType": border}
    yield (image[..., 0].copy(), 5, 20, 3), {}
    yield (image, -1, 30, 2), {}


@operation("src", examples=examples)
def bilateralFilter(
    src: Image,
    d: int,
    sigmaColor: float,
    sigmaSpace: float,
    dst: Any = None,  # noqa: ARG001 - whoever calls kernels fills it
    borderType: int = cv2.BORDER_DEFAULT,
) -> Plan | None:
    """Plan one call of ``cv2.bilateralFilter`` of bytes."""
    if src.dtype != "uint8" or src.channels not in _CHANNELS or not src.pixels:
        return None
    if borderType not in FILTER_BORDERS or not math.isfinite(sigmaColor + sigmaSpace):
        return None
    if min(sigmaColor, sigmaSpace) <= _LEAST:
        return Plan(torch.clone)
    size = whole(d)
    radius = max(round(sigmaSpace * 1.5) if size <= 0 else size // 2, 1)
    if radius > _LARGEST_RADIUS:
        return None
    area = Window(2 * radius + 1, 2 * radius + 1, radius, radius)
    shares = _shares(radius, float(np.float32(-0.5 / sigmaSpace**2)))
    falloff = float(np.float32(-0.5 / sigmaColor**2))
    steps = np.arange(256 * src.channels, dtype=np.float64)
    weights = Table(np.exp(steps * steps * falloff).astype(np.float32))
    height, width = src.height, src.width

    def run(images: Tensor) -> Tensor:
        bordered = area.around(images, borderType).to(torch.int32)
        own = images.to(torch.int32)
        table = weights.on(images)
        colours = torch.zeros(images.shape, dtype=torch.float32, device=images.device)
        total = colours[..., :1].clone()
        for (top, left), share in shares:
            other = bordered[:, top : top + height, left : left + width]
            apart = (other - own).abs_().sum(-1, keepdim=True, dtype=torch.int32)
            weight = lookup_rows(table, apart).mul_(share)
            total += weight
            colours += other * weight
        return (colours / total).round_().clamp_(0, 255).to(torch.uint8)

    # Some of OpenCV's sums are fused, and those of planes are IPP's.
    return Plan(run, "lsb1")


def _shares(radius: int, falloff: float) -> list[tuple[tuple[int, int], float]]:
    """Return the places of the neighbours in the window, and the weight of each."""
    result = []
    for down in range(-radius, radius + 1):
        for across in range(-radius, radius + 1):
            square = down * down + across * across
            if square <= radius * radius:
                share = float(np.float32(math.exp(square * falloff)))
                result.append(((down + radius, across + radius), share))
    return result
