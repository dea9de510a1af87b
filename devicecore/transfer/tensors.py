"""Any framework's array as a tensor of torch, where it is."""

from __future__ import annotations

import sys
from typing import Any

from devicecore.errors import TransferError
from devicecore.optional import class_in, require
from devicecore.transfer.dlpack import tensor_from_dlpack, tensor_from_numpy


def tensor_of(x: Any) -> Any:
    """Return *x* as a tensor of torch, where it is.

    Raises:
        MissingDependencyError: torch is not installed.
        TransferError: torch has nothing like it; its path is empty.
    """
    torch = require("torch", extra="torch")
    if isinstance(x, torch.Tensor):
        return x
    try:
        return _converted(torch, x)
    except TransferError:
        raise
    except Exception as error:
        reason = f"torch has nothing like this {kind_name(x)} ({error})"
        raise TransferError("", reason, "convert it to an array of numbers first") from error


def kind_name(x: Any) -> str:
    """Return the full name of the type of *x*."""
    return f"{type(x).__module__}.{type(x).__qualname__}"


def _converted(torch: Any, x: Any) -> Any:
    if isinstance(x, (class_in("numpy", "ndarray"), class_in("numpy", "generic"))):
        return tensor_from_numpy(x)
    if isinstance(x, class_in("tensorflow", "Tensor")):
        return _from_tensorflow(x)
    if isinstance(x, class_in("paddle", "Tensor")):
        return tensor_from_dlpack(x.detach())
    if hasattr(x, "__dlpack__"):
        made = tensor_from_dlpack(x)
        # To JAX its arrays never change, and torch could write into this one.
        return made.clone() if isinstance(x, class_in("jax", "Array")) else made
    return torch.as_tensor(x, device="cpu")


def _from_tensorflow(x: Any) -> Any:
    if x.device.endswith("CPU:0"):
        return tensor_from_numpy(x.numpy()).clone()
    capsule = sys.modules["tensorflow"].experimental.dlpack.to_dlpack(x)
    return sys.modules["torch"].from_dlpack(capsule).clone()
