"""Copies of arrays that the program may change before the device reads them."""

from __future__ import annotations

from mmap import mmap
from typing import Any

import numpy as np

from devicecore.migrate.recording.nodes import Node, make_source

Array = np.ndarray[Any, Any]

# What else an array may be a view of that stays as it is; a tensor's memory, for one, does not.
_FIXED = (bytes, mmap)


def copy_array(array: Array) -> Node:
    """Return the values of an array."""
    return _frozen(array) or make_source(array.copy())


def pin_array(array: Array) -> Node:
    """Return the values of an array in page-locked memory, from where a GPU copies by itself."""
    import torch

    kind = getattr(torch, array.dtype.name, None)
    if kind is None or is_frozen(array):
        return copy_array(array)
    copy = torch.empty(array.shape, dtype=kind, device="cpu", pin_memory=True)
    if min(array.strides, default=0) < 0:
        copy.numpy()[...] = array
    else:
        copy.copy_(torch.from_numpy(array))  # torch copies by several threads
    return make_source(copy.numpy())


def share_array(array: Array) -> Node:
    """Return the values of an array that the program promises not to change."""
    return make_source(array if array.flags.writeable else readable(array))


def is_frozen(array: Array) -> bool:
    """Return whether numpy lets nobody write into an array, nor into one that it is a view of."""
    held: Any = array
    while isinstance(held, np.ndarray):
        if held.flags.writeable:
            return False
        held = held.base
    return held is None or isinstance(held, _FIXED)


def _frozen(array: Array) -> Node | None:
    """Return the values of an array that stay as they are where they lie."""
    if not is_frozen(array) or min(array.strides, default=0) < 0:
        return None
    return make_source(readable(array))


def readable(array: Array) -> Array:
    """Return a read-only array in the same memory, as one that torch takes without a warning."""
    return np.asarray(_Lender(array))


class _Lender:
    """Has the memory of a read-only array, for one that torch takes without a warning.

    Nobody writes into that one either.
    """

    def __init__(self, array: Array) -> None:
        self._array = array
        given = array.__array_interface__
        self.__array_interface__ = given | {"data": (given["data"][0], False)}
