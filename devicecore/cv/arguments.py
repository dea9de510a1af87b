"""Parses arguments that are not images as OpenCV does: integers, sizes, border values."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

_LARGEST_INT = (1 << 31) - 1


def whole(value: Any) -> int:
    """Return a whole number; OpenCV takes neither a float nor a bool for one.

    Raises:
        TypeError: It is none.
        ValueError: It has more than 32 bits.
    """
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, np.integer)):
        raise TypeError(value)
    if not -_LARGEST_INT <= value <= _LARGEST_INT:
        raise ValueError(value)
    return int(value)


def is_number(value: Any, kind: str) -> bool:
    """Return whether kernels may read *value* as OpenCV does.

    Args:
        value: An argument.
        kind: ``"int"``, ``"float"`` or ``"bool"``: what the parameter is.
    """
    if kind == "bool":
        return isinstance(value, bool)
    if isinstance(value, (bool, np.bool_)):
        return False
    if kind == "int":
        return isinstance(value, (int, np.integer)) and abs(int(value)) <= _LARGEST_INT
    return isinstance(value, (int, float)) and math.isfinite(value)


def size(value: Any) -> tuple[int, int]:
    """Return a width and a height.

    Raises:
        TypeError: One is no whole number.
        ValueError: There are not two of them, or one is not positive.
    """
    width, height = map(whole, value)
    if width <= 0 or height <= 0:
        raise ValueError(value)
    return width, height


def constant(value: Any, channels: int, dtype: str) -> tuple[float, ...]:
    """Return the value of a constant border for each channel, in the images' type.

    Args:
        value: A number, which is the first channel's, or up to four of them.
        channels: How many the images have.
        dtype: The images' type.

    Raises:
        TypeError: OpenCV takes no such value.
        ValueError: It has too many numbers, or one that cannot be saturated.
    """
    given = _numbers(value)
    if len(given) > 4 or not all(map(math.isfinite, given)):
        raise ValueError(value)
    four = given + (0,) * (4 - len(given))
    if channels > 4 and len(set(four)) > 1:
        raise ValueError(value)
    return tuple(_saturated(four[channel % 4], np.dtype(dtype)) for channel in range(channels))


def _numbers(value: Any) -> tuple[float, ...]:
    if value is None:
        return ()
    if isinstance(value, (int, float)):
        return (value,)
    if isinstance(value, (tuple, list)) and all(isinstance(each, (int, float)) for each in value):
        return tuple(value)
    raise TypeError(value)


def _saturated(number: float, dtype: np.dtype[Any]) -> float:
    if dtype.kind == "f":
        with np.errstate(over="ignore"):
            return float(dtype.type(number))
    if abs(number) > _LARGEST_INT:
        raise ValueError(number)
    limits = np.iinfo(dtype)
    return min(max(round(number), int(limits.min)), int(limits.max))  # half to even
