"""`cv2.perspectiveTransform` on tensors of torch: points, each as the channels of a pixel."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from devicecore.cv.operation import operation
from devicecore.cv.plan import Plan

if TYPE_CHECKING:
    from collections.abc import Iterator

    from devicecore.cv.image import Image

    Tensor = torch.Tensor

# The numbers of coordinates before and after, which OpenCV has formulas of their own for.
_COORDINATES = frozenset({(2, 2), (3, 3), (3, 2)})
_MATRIX_TYPES = frozenset({np.dtype("float32"), np.dtype("float64")})
# Points whose divisor is nearer to 0 become 0.
_NEAR = float(np.finfo(np.float32).eps)


def examples() -> Iterator[tuple[tuple[Any, ...], dict[str, Any]]]:
    """Yield small calls of every kind."""
    chance = np.random.default_rng(21)
    for before, after in sorted(_COORDINATES):
        points = chance.normal(0, 50, (19, 1, before)).astype(np.float32)
        for dtype in (np.float32, np.float64):
            yield (points, chance.normal(size=(after + 1, before + 1)).astype(dtype)), {}


@operation("src", examples=examples)
def perspectiveTransform(
    src: Image,
    m: Any,
    dst: Any = None,  # noqa: ARG001 - whoever calls kernels fills it
) -> Plan | None:
    """Plan one call of ``cv2.perspectiveTransform`` of points of float32."""
    if src.dtype != "float32" or not isinstance(m, np.ndarray) or m.dtype not in _MATRIX_TYPES:
        return None
    if m.ndim != 2 or m.shape[1] != src.channels + 1:
        return None
    if (src.channels, m.shape[0] - 1) not in _COORDINATES or not np.isfinite(m).all():
        return None
    *rows, divisor = m.astype(np.float64).tolist()

    def run(images: Tensor) -> Tensor:
        # Sums of float64, as OpenCV computes them, one product after the other.
        places = images.double().unbind(-1)
        below = _row(places, divisor)
        is_zero = ~(below.abs() > _NEAR)  # also of what is not a number
        share = torch.where(is_zero, 1.0, below).reciprocal()
        found = torch.stack([_row(places, each) * share for each in rows], -1)
        return found.masked_fill(is_zero[..., None], 0).float()

    return Plan(run)


def _row(places: tuple[Tensor, ...], factors: list[float]) -> Tensor:
    total = places[0] * factors[0]
    for place, factor in zip(places[1:], factors[1:-1], strict=True):
        total = total + place * factor
    return total + factors[-1]
