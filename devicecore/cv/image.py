"""`Image`: shape and type of an image, without its pixels."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from attrs import frozen

from devicecore.cv.environment import environment

if TYPE_CHECKING:
    from collections.abc import Sequence


# Of a batch of images.
BATCH_AXES = 4
_MOST_KEPT = 1024
_NOT_WRITABLE = "OpenCV does not write there"


@frozen(cache_hash=True)  # it is part of the key of every call
class Image:
    """The size and the type of an image, of a plane, or of an array beside them.

    Attributes:
        height: Rows.
        width: Columns.
        channels: Values of one pixel.
        dtype: The type of one value, as numpy and torch call it.
        has_channels: Whether there is an axis for them.
        missing: The element types that the device has not on which the image is.
    """

    height: int
    width: int
    channels: int
    dtype: str
    has_channels: bool = True
    missing: frozenset[str] = frozenset()

    @property
    def has_float64(self) -> bool:
        """Whether the device that computes with it has float64."""
        return "float64" not in self.missing

    def lacks(self, dtype: Any) -> bool:
        """Return whether the image's device has no such type, by its name or as torch's."""
        return str(dtype).removeprefix("torch.") in self.missing

    @property
    def size(self) -> tuple[int, int]:
        """Width and height, in OpenCV's order."""
        return self.width, self.height

    @property
    def pixels(self) -> int:
        """How many there are."""
        return self.width * self.height


@lru_cache(_MOST_KEPT)  # a type of numpy's takes a while to say its name
def image_of(shape: Sequence[int], dtype: Any, missing: frozenset[str] = frozenset()) -> Image:
    """Return what an array of two or three axes is.

    Args:
        shape: Its axes.
        dtype: Its type.
        missing: The element types that its device has not.

    Raises:
        ValueError: It has other axes.
    """
    kind = str(dtype).removeprefix("torch.")
    if len(shape) == 2:
        return Image(shape[0], shape[1], 1, kind, has_channels=False, missing=missing)
    height, width, channels = shape
    return Image(height, width, channels, kind, missing=missing)


@frozen
class Place:
    """What is known of the array or tensor that a caller gave for the result.

    Attributes:
        is_operand: Whether it is one of the images that are read.
        is_continuous: Whether its rows follow each other in memory: OpenCV computes them as one.
        shape: Its axes.
    """

    is_operand: bool
    is_continuous: bool
    shape: tuple[int, ...]


def place_of(destination: Any, images: Sequence[Any]) -> Place:
    """Return where a result goes.

    Args:
        destination: An array or a tensor that is given for the result.
        images: Those that are read.

    Raises:
        ValueError: It overlaps with an operand without being one, or OpenCV cannot write there
            or does not write such a type.
    """
    if isinstance(destination, np.ndarray) and not is_writable(destination):
        raise ValueError(_NOT_WRITABLE)
    if isinstance(destination, np.ndarray) and not destination.dtype.isnative:
        msg = "its bytes are in another order, which OpenCV does not see"
        raise ValueError(msg)
    if not _is_written(destination.dtype):
        msg = f"it is of {destination.dtype}, which OpenCV does not write"
        raise ValueError(msg)
    own = (_where(destination), destination.shape, destination.dtype)
    is_continuous, shape = _is_continuous(destination), tuple(destination.shape)
    for image in images:
        if (_where(image), image.shape, image.dtype) == own:
            return Place(is_operand=True, is_continuous=is_continuous, shape=shape)
        if _overlaps(image, destination):
            msg = "the result overlaps with an operand"
            raise ValueError(msg)
    return Place(is_operand=False, is_continuous=is_continuous, shape=shape)


@lru_cache(_MOST_KEPT)  # a type of numpy's takes a while to say its name
def _is_written(dtype: Any) -> bool:
    return environment().writes(str(dtype).removeprefix("torch."))


def places_of(destinations: Sequence[Any], images: Sequence[Any]) -> tuple[Place, ...]:
    """Return where several results go.

    Args:
        destinations: Arrays or tensors that are given for them.
        images: Those that are read.

    Raises:
        ValueError: See `place_of`; or two of them overlap.
    """
    if not all(getattr(each, "ndim", 0) > 1 for each in destinations):
        kinds = ", ".join(sorted({type(each).__name__ for each in destinations}))
        msg = f"it has items of type {kinds}, not all of them with two axes or more"
        raise ValueError(msg)
    if images and images[0].ndim == BATCH_AXES:
        msg = "images of a batch have no planes in common"
        raise ValueError(msg)
    if _any_overlap(destinations, len(destinations)):
        msg = "results overlap with each other"
        raise ValueError(msg)
    return tuple(place_of(each, images) for each in destinations)


def _any_overlap(images: Sequence[Any], written: int) -> bool:
    """Return whether any of the last images, which are written, overlaps with another one."""
    first = len(images) - written
    return any(
        _overlaps(images[place], other)
        for place in range(first, len(images))
        for other in images[:place]
    )


def check_written(name: str, images: Sequence[Any], count: int) -> None:
    """Make sure of images that are read and written.

    Args:
        name: The parameter that they are given for.
        images: All of the call; these are the last ones.
        count: How many they are.

    Raises:
        ValueError: They are for OpenCV to judge.
    """
    written = images[len(images) - count :]
    if any(
        isinstance(each, np.ndarray) and each.size and not is_writable(each) for each in written
    ):
        msg = f"{name}: {_NOT_WRITABLE}"
        raise ValueError(msg)
    if _any_overlap(images, count):  # of several, OpenCV writes one after the other
        msg = f"{name} overlaps with other images"
        raise ValueError(msg)


def is_writable(array: np.ndarray[Any, Any]) -> bool:
    """Return whether OpenCV writes into an array: whole rows of pixels, one below the other."""
    image = array if array.ndim < BATCH_AXES else array[0]
    pixel = image.itemsize * (image.shape[2] if image.ndim == 3 else 1)
    wanted = (pixel, image.itemsize)[: image.ndim - 1]
    row = pixel * image.shape[1] if image.ndim > 1 else pixel
    return bool(array.flags.writeable and image.strides[1:] == wanted and image.strides[0] >= row)


def _where(image: Any) -> tuple[int, Any]:
    """Return where an array or a tensor starts, and its strides."""
    if isinstance(image, np.ndarray):
        return image.ctypes.data, image.strides
    return image.data_ptr(), image.stride()


def _overlaps(one: Any, other: Any) -> bool:
    if isinstance(one, np.ndarray) or isinstance(other, np.ndarray):
        return type(one) is type(other) and np.may_share_memory(one, other)
    (first, last), (start, end) = map(_span, (one, other))
    return first < end and start < last


def _span(tensor: Any) -> tuple[int, int]:
    """Return the address of a tensor's first byte, and the one behind its last."""
    steps = zip(tensor.stride(), tensor.shape, strict=True)
    last = sum(stride * (length - 1) for stride, length in steps)
    return tensor.data_ptr(), tensor.data_ptr() + (last + 1) * tensor.element_size()


def _is_continuous(image: Any) -> bool:
    if isinstance(image, np.ndarray):
        return bool(image.flags.c_contiguous)
    return bool(image.is_contiguous())
