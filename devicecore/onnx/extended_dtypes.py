"""Element types that numpy has only through ml_dtypes: bfloat16, those of 8 bits, and smaller ones.

ONNX Runtime does not know such arrays, so it is given their bytes and gives its own. What is
smaller than a byte shares one there, the first element in the lowest bits; ml_dtypes gives each a
byte.
"""

from __future__ import annotations

import ctypes
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from devicecore.onnx.arrays import ElementType


def extended_dtype(element: ElementType) -> Any:
    """Return numpy's dtype of *element*; None if ml_dtypes is not installed or too old for it."""
    try:
        found = getattr(import_module("ml_dtypes"), element.name, None)
    except ImportError:
        return None
    return None if found is None else np.dtype(found)


def packed(array: Any, element: ElementType) -> Any:
    """Return the bytes of *array* as ONNX Runtime has them, where elements share a byte."""
    bits = 8 // element.per_byte
    flat = np.zeros(-(-array.size // element.per_byte) * element.per_byte, np.uint8)
    flat[: array.size] = array.ravel().astype(np.int8).view(np.uint8) & (2**bits - 1)
    return np.bitwise_or.reduce(flat.reshape(-1, element.per_byte) << _shifts(element), axis=1)


def unpacked(data: Any, count: int, element: ElementType, dtype: Any) -> Any:
    """Return an array of *count* elements of *dtype* out of bytes where they share one."""
    bits = 8 // element.per_byte
    high = ((data[:, None] >> _shifts(element)).ravel() << (8 - bits)).astype(np.uint8)[:count]
    signed = element.name.startswith("int")
    return ((high.view(np.int8) if signed else high) >> (8 - bits)).astype(dtype)


def read_value(value: Any, element: ElementType, dtype: Any) -> Any:
    """Return a new array of *dtype* with what *value*, ONNX Runtime's tensor on the host, holds."""
    data = np.empty(value.tensor_size_in_bytes(), np.uint8)
    ctypes.memmove(data.ctypes.data, value.data_ptr(), data.size)
    shape = tuple(value.shape())
    if element.per_byte == 1:
        return data.view(dtype).reshape(shape)
    return unpacked(data, int(np.prod(shape)), element, dtype).reshape(shape)


def _shifts(element: ElementType) -> Any:
    return np.arange(element.per_byte, dtype=np.uint8) * np.uint8(8 // element.per_byte)
