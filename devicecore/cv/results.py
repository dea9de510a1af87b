"""What a kernel returns, as OpenCV returns it: arrays of its shapes, numbers, tuples."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    import torch


def on_host(result: Any, finish: Callable[[Any], Any] | None = None) -> Any:
    """Return the result of one image, whose tensors become arrays and numbers.

    Args:
        result: A tensor, or a tuple or list of them.
        finish: What makes OpenCV's kind of result of it.
    """
    if isinstance(result, (tuple, list)):
        found: Any = type(result)(map(on_host, result))
    else:
        found = _array(result) if result.ndim else result.item()
    return found if finish is None else finish(found)


def of_batch(result: Any, finish: Callable[[Any], Any] | None = None) -> Any:
    """Return the results of a batch: one array, or a list where OpenCV returns something else."""
    if isinstance(result, (tuple, list)):
        found: Any = [type(result)(each) for each in zip(*map(of_batch, result), strict=True)]
    else:
        found = _array(result)
    return found if finish is None else [finish(each) for each in found]


def _array(tensor: torch.Tensor) -> np.ndarray[Any, Any]:
    """Return a new array with memory of its own, as OpenCV's are."""
    found = np.empty(tensor.shape, str(tensor.dtype).removeprefix("torch."))
    sys.modules["torch"].from_numpy(found).copy_(tensor)
    return found


def into(destination: Any, result: Any) -> Any:
    """Return *destination* with the result in it, if it is of its kind, as OpenCV does."""
    if destination is None:
        return result
    if (
        getattr(destination, "shape", None) != getattr(result, "shape", ())
        or destination.dtype != result.dtype
    ):
        return result
    destination[...] = result
    return destination
