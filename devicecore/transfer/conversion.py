"""`as_tensor` and `to_numpy`: any framework's array as torch's or numpy's."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from devicecore.errors import TransferError
from devicecore.optional import require
from devicecore.transfer.loaded import class_in
from devicecore.transfer.moving import tensors_to_device
from devicecore.transfer.tensors import kind_name, tensor_of

if TYPE_CHECKING:
    from devicecore.device import Device
    from devicecore.names import DeviceName

_PATH = "x"


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
    if hasattr(x, "numpy"):  # TensorFlow, Paddle, ONNX Runtime
        return numpy.asarray(x.numpy())
    if hasattr(x, "__dlpack__") and not hasattr(x, "__array__"):
        return numpy.from_dlpack(x)
    return numpy.asarray(x)


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
    numpy, torch = sys.modules["numpy"], sys.modules["torch"]
    name = str(tensor.dtype).removeprefix("torch.")
    words = {1: torch.uint8, 2: torch.int16}.get(tensor.itemsize)
    dtype = getattr(require("ml_dtypes", extra="onnx"), name, None)
    if dtype is None or words is None:
        raise TransferError(_PATH, f"numpy has no {name}", "call its float() first")
    return tensor.view(words).numpy().view(numpy.dtype(dtype))
