"""Converts what a kernel returns to what OpenCV returns: arrays, numbers, tuples."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import numpy as np

from devicecore.cv.image import BATCH_AXES
from devicecore.cv.sequences import rebuild_sequence

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import torch

OTHER_KIND = (
    "the place for the result is an array where the images are, and a tensor where they are"
)


def to_host(result: Any, finish: Callable[[Any], Any] | None = None) -> Any:
    """Return the result of one image, whose tensors become arrays and numbers.

    Args:
        result: A tensor, or a tuple or list of them.
        finish: What makes OpenCV's kind of result of it.
    """
    if isinstance(result, (tuple, list)):
        converted: Any = rebuild_sequence(result, map(to_host, result))
    else:
        converted = _array(result) if result.ndim else result.item()
    return converted if finish is None else finish(converted)


def first_result(result: Any) -> Any:
    """Return the result of the first image of a batch, in OpenCV's shape."""
    if isinstance(result, (tuple, list)):
        return rebuild_sequence(result, map(first_result, result))
    one = result.select(0, 0)
    return one.select(2, 0) if one.ndim == 3 and one.size(2) == 1 else one


def batch_results(result: Any, finish: Callable[[Any], Any] | None = None) -> Any:
    """Return the results of a batch: one array, or a list where OpenCV returns something else."""
    if isinstance(result, (tuple, list)):
        parts = (_in_opencvs_shape(batch_results(each)) for each in result)
        converted: Any = [rebuild_sequence(result, each) for each in zip(*parts, strict=True)]
    else:
        converted = _array(result)
    return converted if finish is None else [finish(each) for each in converted]


def _in_opencvs_shape(array: Any) -> Any:
    """Return results of images without the axis of a single channel."""
    has_one = isinstance(array, np.ndarray) and array.ndim == 4 and array.shape[3] == 1
    return array[..., 0] if has_one else array


def _array(tensor: torch.Tensor) -> np.ndarray[Any, Any]:
    """Return a new array with memory of its own, as OpenCV's are."""
    array = np.empty(tensor.shape, str(tensor.dtype).removeprefix("torch."))
    sys.modules["torch"].from_numpy(array).copy_(tensor)
    return array


def _are_several(value: Any) -> bool:
    return isinstance(value, (list, tuple))


def write_into(destination: Any, result: Any) -> Any:
    """Return *destination* with the result in it, if it is of its kind, as OpenCV does.

    Args:
        destination: An array or a tensor, or several where there are several results.
        result: What was computed.

    Raises:
        TypeError: One of them is an array, and the other a tensor.
    """
    if _are_several(destination) and _are_several(result):
        given = [*destination, *[None] * (len(result) - len(destination))]
        return rebuild_sequence(result, map(write_into, given, result))
    if isinstance(destination, np.ndarray) != isinstance(result, np.ndarray) and (
        hasattr(destination, "ndim") and hasattr(result, "ndim")
    ):
        raise TypeError(OTHER_KIND)
    shape, wanted = getattr(destination, "shape", None), getattr(result, "shape", None)
    if shape is None or wanted is None or destination.dtype != result.dtype:
        return result
    if shape != wanted:
        if _as_matrix(shape) != _as_matrix(wanted):
            return result
        result = result.reshape(shape)
    place = destination.detach() if hasattr(destination, "detach") else destination
    place[...] = result
    return destination


def _as_matrix(shape: Sequence[int]) -> tuple[int, ...]:
    """Return a shape with the columns and the channels that OpenCV takes for granted."""
    return (*shape, *[1] * (3 - len(shape)))


def write_each_into(destination: Any, outputs: Sequence[Any]) -> list[Any]:
    """Return the results of a batch in the places that were given for all of them.

    Args:
        destination: A batch in one array, or several where an image has several results.
        outputs: What was computed of each image.
    """
    if destination is None:
        return list(outputs)
    return [
        write_into(_part(destination, index, len(outputs)), one)
        for index, one in enumerate(outputs)
    ]


def _part(destination: Any, index: int, count: int) -> Any:
    if _are_several(destination):
        return tuple(_part(each, index, count) for each in destination)
    is_batch = getattr(destination, "ndim", 0) == BATCH_AXES and len(destination) == count
    return destination[index] if is_batch else None
