"""Arithmetic of images with numbers, which OpenCV does in float64."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from devicecore.cv.plan import Plan
from devicecore.cv.table import Table
from devicecore.cv.torch_support.dtypes import unsigned_as_signed
from devicecore.cv.torch_support.operands import (
    SMALL_INTEGERS,
    channel_numbers,
    convert_to,
    with_numbers,
)
from devicecore.cv.torch_support.pixels import lookup_rows

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from devicecore.cv.image import Image
    from devicecore.kernels import Exactness

    Tensor = torch.Tensor
    Combine = Callable[[Any, Any], Any]

_OVERFLOW = float(-(1 << 31))
# Larger tables are not kept with a plan: a program may have many.
_LARGEST_KEPT = 256


def with_scalar(
    src: Image, value: Any, target: torch.dtype, scale: float, compute: Combine
) -> Plan | None:
    """Plan arithmetic with constant numbers.

    Args:
        src: The image.
        value: A number, or one for each channel.
        target: The type of the result.
        scale: A factor that *compute* has in it.
        compute: Takes values of the image and the numbers, both as arrays or both as tensors.
    """
    values = channel_numbers(value, src, number_is_for_all=True)
    if values is None:
        return None
    if src.has_float64:
        return Plan(with_numbers(lambda a, b: convert_to(compute(a.double(), b), target), values))
    if src.dtype in SMALL_INTEGERS:
        return _by_table(src, values, target, compute)
    kept, promise = floats_for(src, values)
    return Plan(with_numbers(compute, kept), promise if scale == 1 else "tolerance")


def floats_for(src: Image, values: Sequence[float]) -> tuple[NDArray[Any], Exactness]:
    """Return numbers in the widest type of floats that an image's device has.

    Args:
        src: The image.
        values: The numbers.

    Returns:
        An array, and what may be promised of a sum, a product or a quotient with it in float32: one
        of two float32 is the same whether it is rounded to float64 before or not.
    """
    if src.has_float64:
        return np.asarray(values, np.float64), "exact"
    kept = np.asarray(values, np.float32)
    return kept, "exact" if (kept == np.asarray(values)).all() else "tolerance"


def _by_table(src: Image, values: list[float], target: torch.dtype, compute: Combine) -> Plan:
    """Plan it for integers by a table of what becomes of each, which the host computes."""
    limits = np.iinfo(src.dtype)
    numbers_ = values[:1] if len(set(values)) == 1 else values
    columns = len(numbers_)

    def table() -> NDArray[Any]:
        every = np.arange(int(limits.min), int(limits.max) + 1, dtype=np.float64)[:, None]
        with np.errstate(all="ignore"):
            result = _finished(compute(every, np.array(numbers_)), target)
        return unsigned_as_signed(torch.from_numpy(result.ravel())).numpy()

    kept = Table(table()) if limits.max - limits.min < _LARGEST_KEPT else None

    def run(images: Tensor) -> Tensor:
        there = torch.from_numpy(table()).to(images.device) if kept is None else kept.on(images)
        place = images.to(torch.int32) - int(limits.min)
        if columns > 1:
            place = place * columns + torch.arange(columns, dtype=torch.int32, device=images.device)
        return lookup_rows(there, place).view(target)

    return Plan(run)


def _finished(x: NDArray[Any], target: torch.dtype) -> NDArray[Any]:
    """Return what `convert_to` does, on the host."""
    kind = np.dtype(str(target).removeprefix("torch."))
    if kind.kind == "f":
        return x.astype(kind)
    whole, limits = np.rint(x), np.iinfo(kind)
    fits = (whole >= _OVERFLOW) & (whole < -_OVERFLOW)
    result: NDArray[Any] = np.where(fits, whole, _OVERFLOW).clip(limits.min, limits.max)
    return result.astype(kind)
