"""`cv2.norm` on torch tensors: of images and of differences of two."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import cv2
import numpy as np
import torch

from devicecore.cv.environment import environment
from devicecore.cv.image import Image
from devicecore.cv.operation import operation
from devicecore.cv.plan import Plan
from devicecore.cv.result_rules import number
from devicecore.cv.torch_support.masks import is_mask
from devicecore.cv.torch_support.operands import SMALL_INTEGERS, is_alike
from devicecore.cv.torch_support.pair_sums import norm_without_float64
from devicecore.cv.torch_support.sqrt import rounded_sqrt

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Tensor = torch.Tensor

# Below this, sums of whole numbers in float64, such as OpenCV's, are not rounded.
_EXACT = 1 << 53
_FLOATS = frozenset({"float32", "float64"})
_WORK = {
    **dict.fromkeys(("uint8", "int8"), torch.int32),
    **dict.fromkeys(("uint16", "int16"), torch.int64),
    **dict.fromkeys(_FLOATS, torch.float64),
}
_KINDS = frozenset({cv2.NORM_INF, cv2.NORM_L1, cv2.NORM_L2})
# IPP's sums of other squares are rounded.
_SQUARED = SMALL_INTEGERS - {"int16"}


def examples() -> Iterator[tuple[tuple[Any, ...], dict[str, Any]]]:
    """Yield small calls of every kind."""
    chance = np.random.default_rng(16)
    for dtype in (np.uint8, np.int8, np.uint16, np.int16):
        limits = np.iinfo(dtype)
        first, second = chance.integers(limits.min, limits.max, (2, 13, 19, 3), dtype)
        numbers = chance.random((2, 13, 19, 3), np.float32)
        for kind in sorted(_KINDS):
            yield (*numbers, kind), {}
            yield (first, kind), {}
            yield (first, second, kind), {}
            yield (first, second, kind, (first[..., 0] & 1).astype(np.uint8)), {}
            yield (first[..., :2].copy(), kind, np.ones((13, 19), np.uint8)), {}


@operation("src1", "src2", "normType", "mask", examples=examples)
def norm(src1: Image, src2: Any = ..., normType: Any = None, mask: Any = None) -> Plan | None:
    """Plan one call of ``cv2.norm``.

    Of its two signatures, this is the one for two images; for one, *src2* is the kind, and
    *normType* may be the mask.
    """
    other, kind, wanted = src2, normType, mask
    if not isinstance(src2, Image):
        other = None
        if src2 is not ...:
            kind, wanted = src2, mask if normType is None else normType
            if mask is not None and normType is not None:
                return None
    if src2 is None:  # OpenCV takes it for an image, or for a kind
        return None
    kind = cv2.NORM_L2 if kind is None else kind
    # IPP's norms of three channels with a mask are put together of those of each.
    is_split = wanted is not None and kind == cv2.NORM_L2 and src1.channels == 3
    if not is_mask(wanted, src1, "int8") or (is_split and environment().uses_ipp):
        return None
    if type(kind) is not int or kind not in _KINDS or not _is_exact(src1, kind):
        return None
    if other is not None and (src1.dtype != other.dtype or not is_alike(src1, other)):
        return None
    # Roots have more bits than float32.
    is_exact = src1.dtype not in _FLOATS and (src1.has_float64 or kind != cv2.NORM_L2)
    run = _computing(src1, kind, has_mask=wanted is not None)
    result = (number(src1, _type_without_float64(src1, kind)),)
    return Plan(run, "exact" if is_exact else "tolerance", float, result=result)


def _type_without_float64(src: Image, kind: int) -> str:
    """Return the type of a norm, in whole numbers where a device without float64 has these."""
    if src.has_float64 or src.dtype in _FLOATS:
        return "float64"
    return {cv2.NORM_INF: "int32", cv2.NORM_L1: "int64"}.get(kind, "float64")


def _computing(src: Image, kind: int, *, has_mask: bool) -> Callable[..., Tensor]:
    if not src.has_float64:
        return norm_without_float64(kind, has_mask=has_mask)
    return _norm(kind, _WORK[src.dtype], has_mask=has_mask)


def _is_exact(src: Image, kind: int) -> bool:
    """Return whether sums of an image, or of the differences of two, are not rounded otherwise."""
    if src.dtype in _FLOATS:
        return True
    if src.dtype not in (_SQUARED if kind == cv2.NORM_L2 else SMALL_INTEGERS):
        return False
    return src.pixels * src.channels << 2 * np.iinfo(src.dtype).bits < _EXACT


def _norm(kind: int, work: torch.dtype, *, has_mask: bool) -> Callable[..., Tensor]:
    def run(images: Tensor, *more: Tensor) -> Tensor:
        others, off = more[: len(more) - has_mask], images.to(work)
        if others:
            off = off - others[0].to(work)
        if has_mask:
            off = off * (more[-1] != 0)
        if kind == cv2.NORM_INF:
            return off.abs().amax((1, 2, 3)).to(torch.float64)
        parts = off.abs() if kind == cv2.NORM_L1 else off * off
        whole = torch.float64 if parts.is_floating_point() else torch.int64
        total = parts.sum((1, 2, 3), dtype=whole).to(torch.float64)
        return total if kind == cv2.NORM_L1 else rounded_sqrt(total)

    return run
