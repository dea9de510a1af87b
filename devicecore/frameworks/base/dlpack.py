"""Arrays of other libraries as tensors of torch, and element types that NumPy lacks.

torch 2.13 ends the process where a stride is negative, and writes into arrays that are read-only.
"""

from __future__ import annotations

import sys
from typing import Any

from devicecore.errors import TransferError
from devicecore.frameworks.base.lookup import class_in
from devicecore.optional import require

_HOST = 1  # DLPack's number of the host's memory
# Element types of ml_dtypes that torch has too, by the size in which their bits are handed over.
_AS_WORDS = {1: "uint8", 2: "int16"}
_MOST_BYTES = 2  # of an element that numpy has through ml_dtypes
_NUMBERS = frozenset("?bBhHiIlLqQefdFD")  # numpy's letters of the types that torch has


def tensor_from_numpy(array: Any) -> Any:
    """Return an array of numpy as a tensor, which shares its memory if torch may.

    It is copied if it is read-only, not aligned, or has a negative stride or other than the
    machine's order of bytes.

    Raises:
        TransferError: torch has no such elements, or the array has a mask.
    """
    numpy, torch = sys.modules["numpy"], sys.modules["torch"]
    if isinstance(array, numpy.ma.MaskedArray):
        raise TransferError("", "its mask would be lost", "call its filled() first")
    array = numpy.asarray(array)
    words = None
    if array.dtype.char not in _NUMBERS:
        words = _words_of(array)
        array = array.view(_AS_WORDS[array.dtype.itemsize])
    if not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    size = array.dtype.itemsize
    if not (array.flags.writeable and array.flags.aligned) or any(
        stride < 0 or stride % size for stride in array.strides
    ):
        array = array.copy()
    tensor = torch.from_numpy(array)
    return tensor if words is None else tensor.view(words)


def _words_of(array: Any) -> Any:
    """Return torch's element type of an array of ml_dtypes."""
    known = getattr(sys.modules["torch"], array.dtype.name, None)
    ours = array.dtype.type.__module__.partition(".")[0] == "ml_dtypes"
    if not ours or known is None or known.itemsize != array.dtype.itemsize:
        fix = "convert it to numbers that torch has, such as float32"
        raise TransferError("", f"torch has no elements like {array.dtype}", fix)
    return known


def tensor_from_dlpack(value: Any) -> Any:
    """Return what *value*, an object with ``__dlpack__``, holds as a tensor where it is.

    What is on the host goes through numpy, which says no where torch would end the process.

    Raises:
        TransferError: torch has no such elements.
        BufferError: The object does not give its memory away.
    """
    torch = sys.modules["torch"]
    if isinstance(value, class_in("onnxruntime", "OrtValue")):
        # In order always, and to be written into; numpy would take it for read-only.
        made = torch.from_dlpack(value)
        return made.view(torch.bool) if value.data_type() == "tensor(bool)" else made
    if value.__dlpack_device__()[0] == _HOST and (array := _as_numpy(value)) is not None:
        return tensor_from_numpy(array)
    if any(stride < 0 for stride in getattr(value, "strides", None) or ()):
        value = value.copy()
    return torch.from_dlpack(value)


def _as_numpy(value: Any) -> Any:
    """Return *value* as an array that shares its memory; None for elements that numpy lacks."""
    numpy = sys.modules.get("numpy")
    if numpy is None:
        return None
    try:
        array = numpy.from_dlpack(value)
    except (BufferError, RuntimeError, TypeError, NotImplementedError):
        return None
    return array


def extended_dtype(name: str) -> Any:
    """Return the element type of ml_dtypes that has this name, and one or two bytes.

    Raises:
        MissingDependencyError: ml_dtypes is not installed.
        TransferError: It has none.
    """
    known = getattr(require("ml_dtypes", extra="onnx"), name, None)
    dtype = None if known is None else sys.modules["numpy"].dtype(known)
    if dtype is None or dtype.itemsize > _MOST_BYTES:
        raise TransferError("", f"numpy has no {name}", "call its float() first")
    return dtype
