"""`as_tensor` and `to_numpy`: any framework's array as torch's or numpy's."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from devicecore.errors import DeviceCoreError, TransferError
from devicecore.optional import class_in, require
from devicecore.transfer.move import tensors_to_device
from devicecore.transfer.tensors import kind_name, tensor_of

if TYPE_CHECKING:
    from devicecore.device import Device
    from devicecore.names import DeviceName

_PATH = "x"
_MOST_BYTES = 2  # of an element that numpy has through ml_dtypes
# What an `OrtValue` may hold and its own ``numpy()`` refuses.
_ORT_LACKS = frozenset(
    f"tensor({name})"
    for name in ("bfloat16", "float8e4m3fn", "float8e4m3fnuz", "float8e5m2", "float8e5m2fnuz")
)


def as_tensor(x: Any, device: str | DeviceName | Device | Any) -> Any:
    """Return *x* as a tensor of torch on *device*.

    Memory is shared where nobody else can be surprised by that: with a writable array of numpy, a
    tensor of torch, Paddle or CuPy, and an ``OrtValue``, if they are on *device* already and torch
    can read them as they lie. Arrays that their framework takes for unchangeable (those of JAX and
    TensorFlow, and read-only ones of numpy) are copied, as torch could write into them.

    Args:
        x: An array of numpy, torch, JAX, TensorFlow, Paddle, CuPy or ONNX Runtime, anything with
            ``__dlpack__``, or numbers and nested lists of them.
        device: See `tensors_to_device`.

    Raises:
        MissingDependencyError: torch is not installed.
        TransferError: torch has nothing like *x*.
        InvalidDeviceNameError: *device* is no name of a device.
        NotLiveError: Its type does not work here.
        UnknownDeviceError: There is no such device.

    Examples:
        >>> as_tensor([[1, 2], [3, 4]], "cpu").shape
        torch.Size([2, 2])
    """
    try:
        tensor = tensor_of(x)
    except TransferError as error:
        raise TransferError(_PATH, error.reason, error.fix) from error.__cause__
    return tensors_to_device(tensor, device)


def to_numpy(x: Any) -> Any:
    """Return *x* as an array of numpy, on the host.

    Memory is shared where *x* is on the host and numpy can read it as it lies; what may not be
    changed is read-only then. A tensor that needs a gradient gives its values. bfloat16 and the
    float8 types become those of ml_dtypes, if that is installed.

    Args:
        x: An array of numpy, torch, JAX, TensorFlow, Paddle, CuPy or ONNX Runtime, anything with
            ``__dlpack__`` or ``__array__``, or numbers and nested lists of them.

    Raises:
        MissingDependencyError: numpy is not installed, or ml_dtypes where it is needed.
        TransferError: numpy has nothing like *x*.

    Examples:
        >>> to_numpy([[1, 2], [3, 4]]).shape
        (2, 2)
    """
    numpy = require("numpy", extra="torch")
    if isinstance(x, numpy.ndarray):
        return x
    if isinstance(x, class_in("torch", "Tensor")):
        return _array_of_tensor(x)
    try:
        found = _array_of(numpy, x)
    except DeviceCoreError:
        raise
    except Exception as error:
        reason = f"numpy has nothing like this {kind_name(x)} ({error})"
        raise TransferError(_PATH, reason, "convert it to an array of numbers first") from error
    if found.dtype == object:
        raise TransferError(
            _PATH, f"numpy has nothing like this {kind_name(x)}", "give it an array"
        )
    return found


def _array_of(numpy: Any, x: Any) -> Any:
    if isinstance(x, class_in("cupy", "ndarray")):
        return x.get()
    if isinstance(x, class_in("paddle", "Tensor")):
        return _array_of_paddle(numpy, x)
    if isinstance(x, class_in("onnxruntime", "OrtValue")) and x.data_type() in _ORT_LACKS:
        return _array_of_tensor(as_tensor(x, "cpu"))  # torch reads what ONNX Runtime cannot
    if hasattr(x, "numpy"):  # TensorFlow, ONNX Runtime
        return numpy.asarray(x.numpy())
    if hasattr(x, "__dlpack__") and not hasattr(x, "__array__"):
        return numpy.from_dlpack(x)
    return numpy.asarray(x)


def _array_of_paddle(numpy: Any, tensor: Any) -> Any:
    """Return Paddle's array; of what numpy lacks Paddle gives the bits, as whole numbers."""
    found = numpy.asarray(tensor.numpy())
    name = str(tensor.dtype).rpartition(".")[2]
    if name == "bfloat16" or name.startswith("float8"):
        found = found.view(_extended_dtype(name))
    return found


def _array_of_tensor(tensor: Any) -> Any:
    torch = sys.modules["torch"]
    if tensor.layout is not torch.strided or tensor.is_nested:
        raise TransferError(_PATH, "it is no dense tensor", "call its to_dense() first")
    if tensor.is_quantized:
        raise TransferError(_PATH, "it is quantized", "call its dequantize() or int_repr() first")
    if tensor.is_meta:
        raise TransferError(_PATH, "it is on meta, where tensors have no values")
    host = tensor.detach().cpu().resolve_conj().resolve_neg()
    try:
        return host.numpy()
    except TypeError:  # an element type that numpy lacks
        return _extended(host)


def _extended(tensor: Any) -> Any:
    """Return an array of an element type that numpy has only through ml_dtypes."""
    torch = sys.modules["torch"]
    dtype = _extended_dtype(str(tensor.dtype).removeprefix("torch."))
    words = {1: torch.uint8, 2: torch.int16}[dtype.itemsize]
    return tensor.view(words).numpy().view(dtype)


def _extended_dtype(name: str) -> Any:
    """Return the element type of ml_dtypes that has this name, and one or two bytes.

    Raises:
        MissingDependencyError: ml_dtypes is not installed.
        TransferError: It has none.
    """
    found = getattr(require("ml_dtypes", extra="onnx"), name, None)
    dtype = None if found is None else sys.modules["numpy"].dtype(found)
    if dtype is None or dtype.itemsize > _MOST_BYTES:
        raise TransferError(_PATH, f"numpy has no {name}", "call its float() first")
    return dtype
