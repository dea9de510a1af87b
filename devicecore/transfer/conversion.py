"""`as_tensor` and `to_numpy`: any framework's array as torch's or numpy's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from devicecore.errors import DeviceCoreError, TransferError
from devicecore.frameworks import Framework, framework_of_arrays
from devicecore.optional import require
from devicecore.transfer.move import tensors_to_device
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
    known = framework_of_arrays(type(x)) or Framework()
    try:
        array = known.to_numpy(numpy, x)
    except TransferError as error:
        raise TransferError(_PATH, error.reason, error.fix) from error.__cause__
    except DeviceCoreError:
        raise
    except Exception as error:
        reason = f"numpy has nothing like this {kind_name(x)} ({error})"
        raise TransferError(_PATH, reason, "convert it to an array of numbers first") from error
    if array.dtype == object:
        raise TransferError(
            _PATH, f"numpy has nothing like this {kind_name(x)}", "give it an array"
        )
    return array
