"""Shape rules: which shapes and types the results of a planned call have, for one image."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from devicecore.cv.image import Image

ArrayInfo = tuple[tuple[int, ...], np.dtype[Any]]
Rule = Callable[[Mapping[str, Any]], tuple[ArrayInfo, ...]]

DEPTHS = ("uint8", "int8", "uint16", "int16", "int32", "float32", "float64", "float16")
"""The element types, by OpenCV's numbers."""


def like(
    image: Image,
    *,
    size: tuple[int, int] | None = None,
    channels: int | None = None,
    dtype: Any = None,
) -> ArrayInfo:
    """Return the shape and type of an image, or of one that differs in what is given.

    Args:
        image: The image.
        size: Another width and height.
        channels: Another count of channels; OpenCV drops the axis of a single one.
        dtype: Another type.
    """
    width, height = size or image.size
    count = image.channels if channels is None else channels
    shape = (height, width) if count == 1 else (height, width, count)
    return shape, np.dtype(dtype or image.dtype)


def number(image: Image, dtype: str = "float64") -> ArrayInfo:
    """Return what a number of each image is: in float32 where the device has no float64."""
    return (), np.dtype("float32" if dtype == "float64" and not image.has_float64 else dtype)


def like_first(given: Mapping[str, Any]) -> tuple[ArrayInfo, ...]:
    """Return the shape and type of the first image: the rule of most functions."""
    return (like(_first(given)),)


def of_depth(parameter: str) -> Rule:
    """Return the rule of functions with a parameter for the type; -1 stands for the image's."""

    def rule(given: Mapping[str, Any]) -> tuple[ArrayInfo, ...]:
        depth = given[parameter]
        return (like(_first(given), dtype=None if depth < 0 else DEPTHS[depth]),)

    return rule


def of_bytes(given: Mapping[str, Any]) -> tuple[ArrayInfo, ...]:
    """Return an image of bytes of the first one's shape."""
    return (like(_first(given), dtype="uint8"),)


def scaled_to(size: Callable[[Image, Mapping[str, Any]], tuple[int, int]]) -> Rule:
    """Return the rule of functions whose result has another width and height."""

    def rule(given: Mapping[str, Any]) -> tuple[ArrayInfo, ...]:
        image = _first(given)
        return (like(image, size=size(image, given)),)

    return rule


def _first(given: Mapping[str, Any]) -> Image:
    return next(value for value in given.values() if isinstance(value, Image))
