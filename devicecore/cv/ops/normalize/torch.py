"""`cv2.normalize` on torch tensors: scales each image's values to a range."""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING, Any

import cv2
import numpy as np
import torch

from devicecore.cv.environment import environment
from devicecore.cv.image import Place
from devicecore.cv.operation import operation
from devicecore.cv.plan import Plan
from devicecore.cv.result_rules import of_depth
from devicecore.cv.table import Table
from devicecore.cv.torch_support.error_free import two_sum
from devicecore.cv.torch_support.float_pairs import FloatPair, as_pair, constant
from devicecore.cv.torch_support.fma import multiply_add
from devicecore.cv.torch_support.operands import SMALL_INTEGERS, fills_vectors, round_to_integers
from devicecore.cv.torch_support.pixels import lookup_rows

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from devicecore.cv.image import Image
    from devicecore.kernels import Exactness

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


@operation("src", examples=examples, result=of_depth("dtype"))
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

    Among values that are not numbers, what OpenCV takes for the least depends on their places. In
    place, it computes the rest of a row that fills no vector one by one, and may round it twice.
    """
    is_in_place = isinstance(dst, Place) and dst.is_operand
    is_plain = mask is None and type(dtype) is int and not is_in_place
    if not is_plain or norm_type != cv2.NORM_MINMAX or not fills_vectors(src):
        return None
    if src.dtype not in SMALL_INTEGERS | {"float32"}:
        return None
    target = getattr(torch, src.dtype) if dtype == -1 else _TARGETS.get(dtype)
    low, high = float(min(alpha, beta)), float(max(alpha, beta))
    if target is None or src.lacks(target) or not (math.isfinite(low) and math.isfinite(high)):
        return None
    add = multiply_add(src, is_fused=environment().has_fma)
    stretch, promise = _stretching(src, low, high, target)

    def run(images: Tensor) -> Tensor:
        x = images.float()
        total = add(x, *(each[:, None, None, None] for each in stretch(x)))
        return total if target.is_floating_point else round_to_integers(total, target)

    return Plan(run, promise)


def _stretching(
    src: Image, low: float, high: float, target: torch.dtype
) -> tuple[Callable[[Tensor], tuple[Tensor, Tensor]], Exactness]:
    """Return what finds the factor for each image and what is added, and what that is good for."""
    is_float = target.is_floating_point
    if src.has_float64:
        return partial(_stretch, low=low, high=high, is_float=is_float), "exact"
    if src.dtype in {"uint8", "int8"}:
        return _stretch_by_table(
            int(np.iinfo(src.dtype).min), low, high, is_float=is_float
        ), "exact"
    promise: Exactness = "tolerance" if is_float else "lsb1"
    return partial(_stretch_in_pairs, low=low, high=high, is_float=is_float), promise


def _stretch_by_table(
    first: int, low: float, high: float, *, is_float: bool
) -> Callable[[Tensor], tuple[Tensor, Tensor]]:
    """Return what reads both from a table of all pairs of a least and a largest byte."""
    least, most = np.meshgrid(
        *(np.arange(first, first + 256, dtype=np.float64),) * 2, indexing="ij"
    )
    spread = most - least
    scale = np.where(spread > 0, 1.0, 0.0) / np.where(spread > 0, spread, 1.0) * (high - low)
    if is_float:
        scale = scale.astype(np.float32).astype(np.float64)
        added: Any = np.float32(low) - (scale * least).astype(np.float32)
    else:
        added = low - scale * least
    changes_nothing = (np.abs(scale - 1) < _NEAR) & (np.abs(added) < _NEAR)
    scale, added = np.where(changes_nothing, 1, scale), np.where(changes_nothing, 0, added)
    table = Table(np.stack((scale, added), -1).reshape(-1, 2).astype(np.float32))

    def stretch(x: Tensor) -> tuple[Tensor, Tensor]:
        low_byte, high_byte = (each.to(torch.int32) - first for each in _limits(x))
        scale, added = lookup_rows(table.on(x), low_byte * 256 + high_byte).unbind(-1)
        return scale, added

    return stretch


def _stretch_in_pairs(
    x: Tensor, *, low: float, high: float, is_float: bool
) -> tuple[Tensor, Tensor]:
    """Return both, computed in float pairs."""
    least, most = _limits(x)
    spread = FloatPair(*two_sum(most, -least))
    is_flat = spread.high <= _NEAR
    spread = FloatPair(torch.where(is_flat, 1.0, spread.high), spread.low)
    scale = (constant(high - low, least) / spread).each(lambda part: part.masked_fill(is_flat, 0))
    if is_float:
        scale = as_pair(scale.float())
        added = float(np.float32(low)) - scale.high * least
    else:
        added = (constant(low, least) - scale * as_pair(least)).float()
    off = (scale - constant(1, least)).float()
    changes_nothing = (off.abs() < _NEAR) & (added.abs() < _NEAR)
    return (
        torch.where(changes_nothing, 1.0, scale.float()),
        torch.where(changes_nothing, 0.0, added),
    )


def _limits(x: Tensor) -> tuple[Tensor, Tensor]:
    return x.amin((1, 2, 3)), x.amax((1, 2, 3))


def _stretch(x: Tensor, *, low: float, high: float, is_float: bool) -> tuple[Tensor, Tensor]:
    """Return the factor for each image, and what is added, in float32."""
    least, most = (each.double() for each in _limits(x))
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
    return scale, added
