"""`cv2.bitwise_and`, `bitwise_or`, `bitwise_xor` and `bitwise_not` on torch tensors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from devicecore.cv.operation import operation
from devicecore.cv.plan import Plan
from devicecore.cv.torch_support.masks import apply_mask
from devicecore.cv.torch_support.operands import channel_numbers, is_alike, with_numbers

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from devicecore.cv.image import Image

    Tensor = torch.Tensor
    Combine = Callable[[Tensor, Tensor], Tensor]

# Integers as wide as each type.
_BITS = {
    "uint8": torch.uint8,
    "int8": torch.int8,
    "uint16": torch.int16,
    "int16": torch.int16,
    "int32": torch.int32,
    "float32": torch.int32,
}
_SCALAR_LENGTH = 4


def examples() -> Iterator[tuple[tuple[Any, ...], dict[str, Any]]]:
    """Yield small calls of every kind, with two operands."""
    chance = np.random.default_rng(6)
    for dtype in (np.uint8, np.int8, np.uint16, np.int16):
        first, second = chance.integers(0, 100, (2, 5, 9, 3), dtype)
        for value in (second, 60, 300, (10.5, -20.25, 300, 0)):
            yield (first, value), {}
            yield (first, value), {"mask": first[..., 0].astype(np.uint8) & 1}
    first, second = chance.normal(0, 9, (2, 5, 9, 3)).astype(np.float32)
    yield (first, second), {}


def single_examples() -> Iterator[tuple[tuple[Any, ...], dict[str, Any]]]:
    """Yield small calls of every kind, with one operand."""
    for (first, _), named in examples():
        yield (first,), named


@operation("src1", "src2", "mask", examples=examples)
def bitwise_and(
    src1: Image,
    src2: Any,
    dst: Any = None,
    mask: Any = None,
) -> Plan | None:
    """Plan one call of ``cv2.bitwise_and``."""
    return _masked(_planned(torch.bitwise_and, src1, src2), mask, src1, dst)


@operation("src1", "src2", "mask", examples=examples)
def bitwise_or(
    src1: Image,
    src2: Any,
    dst: Any = None,
    mask: Any = None,
) -> Plan | None:
    """Plan one call of ``cv2.bitwise_or``."""
    return _masked(_planned(torch.bitwise_or, src1, src2), mask, src1, dst)


@operation("src1", "src2", "mask", examples=examples)
def bitwise_xor(
    src1: Image,
    src2: Any,
    dst: Any = None,
    mask: Any = None,
) -> Plan | None:
    """Plan one call of ``cv2.bitwise_xor``."""
    return _masked(_planned(torch.bitwise_xor, src1, src2), mask, src1, dst)


@operation("src", "mask", examples=single_examples)
def bitwise_not(
    src: Image,
    dst: Any = None,
    mask: Any = None,
) -> Plan | None:
    """Plan one call of ``cv2.bitwise_not``."""
    kind = _BITS.get(src.dtype)
    if kind is None or src.pixels == 0:
        return None
    # With a mask, OpenCV takes the image for numbers, too, of which there is one for each channel.
    if mask is not None and src.pixels < src.channels:
        return None
    return _masked(Plan(lambda x: torch.bitwise_not(x.view(kind)).view(x.dtype)), mask, src, dst)


def _masked(plan: Plan | None, mask: Any, image: Image, dst: Any) -> Plan | None:
    """Return a plan with a mask; OpenCV takes the smallest images with one for numbers."""
    if mask is not None and image.pixels <= _SCALAR_LENGTH:
        return None
    return apply_mask(plan, mask, image, dst)


def _planned(combine: Combine, src1: Image, src2: Any) -> Plan | None:
    kind = _BITS.get(src1.dtype)
    if kind is None:
        return None

    def compute(a: Tensor, b: Tensor) -> Tensor:
        return combine(a.view(kind), b.view(kind)).view(a.dtype)

    if is_alike(src1, src2):
        return Plan(compute) if src1.dtype == src2.dtype else None
    values = channel_numbers(src2, src1, number_is_for_all=False)
    if values is None or src1.dtype in {"int32", "float32"}:
        return None
    limits = np.iinfo(src1.dtype)
    kept = np.rint(values).clip(limits.min, limits.max).astype(src1.dtype)
    table = torch.from_numpy(kept).view(kind).numpy()
    return Plan(with_numbers(lambda a, b: combine(a.view(kind), b).view(a.dtype), table))
