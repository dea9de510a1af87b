"""Second operands of arithmetic: an image like the first, or a number for each channel."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from devicecore.cv.environment import environment
from devicecore.cv.image import Image
from devicecore.cv.table import Table

if TYPE_CHECKING:
    from collections.abc import Callable

    Tensor = torch.Tensor

# Types of integers whose sums and differences fit into int32.
SMALL_INTEGERS = frozenset({"uint8", "int8", "uint16", "int16"})
# Rows of fewer values than OpenCV's vectors hold are computed in another order.
_LONGEST_VECTOR = 16
# Beyond these, OpenCV's own conversions of numbers overflow.
_LARGEST = float(1 << 30)
# A tuple of another length than an image has channels is padded with zeros up to this one.
_SCALAR_LENGTH = 4
_OVERFLOW = float(-(1 << 31))


def is_alike(first: Any, second: Any) -> bool:
    """Return whether both are images of one size and as many channels, of any types."""
    return (
        isinstance(first, Image)
        and isinstance(second, Image)
        and first.pixels > 0
        and (first.size, first.channels) == (second.size, second.channels)
    )


def fills_vectors(image: Image) -> bool:
    """Return whether a row is computed in vectors, whatever lies beside it in memory."""
    return image.height > 0 and image.width * image.channels >= _LONGEST_VECTOR


def channel_numbers(value: Any, image: Image, *, number_is_for_all: bool) -> list[float] | None:
    """Return a number for each channel, or None where OpenCV has to judge.

    Args:
        value: A number, or a tuple of numbers.
        image: What they are an operand for.
        number_is_for_all: Whether a single number is one for all channels, and not for the first.
    """
    is_clear = image.pixels > _SCALAR_LENGTH >= image.channels  # which one is the image
    if not is_clear or environment().version < (5, 0):  # OpenCV 4 has another rule for numbers
        return None
    if type(value) in {int, float}:
        one = float(value)
        result = [one] * image.channels if number_is_for_all else [one, 0, 0, 0][: image.channels]
    elif type(value) is tuple and len(value) in {image.channels, _SCALAR_LENGTH}:
        if not all(type(each) in {int, float} for each in value):
            return None
        result = [float(each) for each in value[: image.channels]]
    else:
        return None
    return result if all(math.isfinite(each) and abs(each) <= _LARGEST for each in result) else None


def with_numbers(
    compute: Callable[[Tensor, Tensor], Tensor], values: Any
) -> Callable[[Tensor], Tensor]:
    """Return *compute* with constant numbers, an array, in the place of its second operand."""
    table = Table(np.asarray(values))
    return lambda x: compute(x, table.on(x))


def round_to_integers(x: Tensor, dtype: torch.dtype) -> Tensor:
    """Return float values in a type of integers, as x86 does: what overflows int32 is its least."""
    whole = x.round()
    fits = (whole >= _OVERFLOW) & (whole < -_OVERFLOW)
    limits = torch.iinfo(dtype)
    return torch.where(fits, whole, _OVERFLOW).clamp_(limits.min, limits.max).to(dtype)


def convert_to(x: Tensor, target: torch.dtype) -> Tensor:
    """Return float values in another type, where integers are rounded as x86 does."""
    return x.to(target) if target.is_floating_point else round_to_integers(x, target)
