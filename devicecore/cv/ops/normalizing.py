"""`cv2.normalize` on tensors of torch: each image's values are stretched over a range."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import cv2
import numpy as np
import torch

from devicecore.cv.environment import environment
from devicecore.cv.operation import operation
from devicecore.cv.ops.fusing import fused
from devicecore.cv.ops.operands import SMALL_INTEGERS, fills_vectors, rounded
from devicecore.cv.plan import Plan

if TYPE_CHECKING:
    from collections.abc import Iterator

    from devicecore.cv.image import Image

    Tensor = torch.Tensor

_TARGETS = {
    cv2.CV_8U: torch.uint8,
    cv2.CV_8S: torch.int8,
    cv2.CV_16U: torch.uint16,
    cv2.CV_16S: torch.int16,
    cv2.CV_32F: torch.float32,
}
# Factors that are nearer to 1, and what is added that is nearer to 0, change nothing.
_NEAR = float(np.finfo(np.float64).eps)


def examples() -> Iterator[tuple[tuple[Any, ...], dict[str, Any]]]:
    """Yield small calls of every kind."""
    chance = np.random.default_rng(20)
    for source in sorted({*SMALL_INTEGERS, "float32"}):
        image = chance.integers(9, 120, (13, 19, 3)).astype(source)
        for depth in (-1, *_TARGETS):
            for alpha, beta in ((0, 255), (1, 0.5)):
                yield (image, None, alpha, beta, cv2.NORM_MINMAX, depth), {}


@operation("src", examples=examples)
def normalize(
    src: Image,
    dst: Any,
    alpha: float = 1,
    beta: float = 0,
    norm_type: int = cv2.NORM_L2,
    dtype: int = -1,
    mask: Any = None,
) -> Plan | None:
    """Plan one call of ``cv2.normalize`` that gives a range of whole images, which hold numbers.

    Among values that are not numbers, what OpenCV takes for the least depends on their places.
    """
    is_plain = dst is None and mask is None and type(dtype) is int
    if not is_plain or norm_type != cv2.NORM_MINMAX or not fills_vectors(src):
        return None
    if src.dtype not in SMALL_INTEGERS | {"float32"}:
        return None
    target = getattr(torch, src.dtype) if dtype == -1 else _TARGETS.get(dtype)
    low, high = float(min(alpha, beta)), float(max(alpha, beta))
    if target is None or not (math.isfinite(low) and math.isfinite(high)):
        return None
    is_fused = environment().has_fma

    def run(images: Tensor) -> Tensor:
        x = images.float()
        scale, added = _stretch(x, low, high, is_float=target.is_floating_point)
        total = fused(x, scale, added) if is_fused else x * scale + added
        return total if target.is_floating_point else rounded(total, target)

    return Plan(run)


def _stretch(x: Tensor, low: float, high: float, *, is_float: bool) -> tuple[Tensor, Tensor]:
    """Return the factor for each image, and what is added, in float32."""
    least, most = (each.double() for each in (x.amin((1, 2, 3)), x.amax((1, 2, 3))))
    spread = most - least
    share = torch.where(spread > _NEAR, 1.0, 0.0) / torch.where(spread > _NEAR, spread, 1.0)
    scale = share * (high - low)
    if is_float:
        scale = scale.float().double()
        added = float(np.float32(low)) - (scale * least).float()
    else:
        added = low - scale * least
    changes_nothing = ((scale - 1).abs() < _NEAR) & (added.abs() < _NEAR)
    scale = torch.where(changes_nothing, 1.0, scale).float()
    added = torch.where(changes_nothing, 0.0, added).float()
    return scale[:, None, None, None], added[:, None, None, None]
