"""Any framework's array as a tensor of torch, where it is."""

from __future__ import annotations

import sys
from typing import Any

from devicecore.errors import TransferError
from devicecore.frameworks import Framework, class_in, framework_of_arrays
from devicecore.optional import require


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
    if isinstance(x, class_in("numpy", "generic")):
        x = sys.modules["numpy"].asarray(x)
    return (framework_of_arrays(type(x)) or Framework()).to_torch(torch, x)
