"""Copies tensors to arrays for OpenCV, and its results back to tensors."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from devicecore.cv.image import BATCH_AXES, is_writable
from devicecore.cv.results import OTHER_KIND
from devicecore.cv.sequences import rebuild_sequence
from devicecore.frameworks.base.dlpack import tensor_from_numpy
from devicecore.transfer import as_tensor, to_numpy


class HostCopies:
    """The arrays that stand for the tensors of one call.

    OpenCV returns the array that a result was written into, and so its tensor is known.
    """

    def __init__(self) -> None:
        self._arrays: dict[Any, np.ndarray[Any, Any]] = {}
        self._tensors: dict[int, Any] = {}
        self._given: list[np.ndarray[Any, Any]] = []
        self._device: Any = None

    def of(self, value: Any, depth: int = 0) -> Any:
        """Return an argument with an array for each tensor, the same one for the same memory.

        Args:
            value: The argument.
            depth: In how many lists and tuples it is.
        """
        if type(value) in _PLAIN:
            return value
        if isinstance(value, (list, tuple)):
            if depth == DEEPEST:
                return value
            return rebuild_sequence(value, (self.of(each, depth + 1) for each in value))
        if isinstance(value, np.ndarray):
            self._given.append(value)
            return value
        torch = sys.modules["torch"]  # the call has a tensor
        if not isinstance(value, torch.Tensor):
            return value
        key = (value.data_ptr(), value.shape, value.stride(), value.dtype)
        if key not in self._arrays:
            array = self._arrays[key] = _for_opencv(to_numpy(value))
            self._tensors[id(array)] = value
        if self._device is None:
            self._device = value.device
        return self._arrays[key]

    def returned(self, result: Any) -> Any:
        """Return a result with a tensor for each array: the one given for it, or a new one.

        Raises:
            TypeError: The result was written into an array that stands beside tensors.
        """
        if isinstance(result, (list, tuple)):
            return rebuild_sequence(result, map(self.returned, result))
        if not isinstance(result, np.ndarray):
            return result
        tensor = self._tensors.get(id(result))
        if tensor is not None:
            if tensor.device.type != "cpu" or tensor.data_ptr() != result.ctypes.data:
                tensor.detach().copy_(as_tensor(result, tensor.device))
            return tensor
        if any(result is each for each in self._given):
            raise TypeError(OTHER_KIND)
        found = tensor_from_numpy(result)
        return found if found.device == self._device else as_tensor(found, self._device)


def _for_opencv(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return an array, or a copy into which OpenCV writes where it does not into that one."""
    if array.ndim not in _IMAGE_AXES or not array.size or is_writable(array):
        return array
    # With room between its rows, as in such a tensor: OpenCV does not compute them as one.
    width = array.ndim - 2 if array.ndim > 2 else 1
    shape = list(array.shape)
    shape[width] += 1
    copy = np.empty(shape, array.dtype)[(slice(None),) * width + (slice(-1),)]
    copy[...] = array
    return copy


_IMAGE_AXES = (2, 3, BATCH_AXES)
# OpenCV reads no arrays in more lists than these, and a list may contain itself.
DEEPEST = 3
# Most arguments, which stay what they are.
_PLAIN = frozenset({bool, float, int, str, type(None)})
