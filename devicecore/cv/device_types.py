"""`missing_types`: the element types that a device lacks, found by trying them."""

from __future__ import annotations

import re
import threading
from typing import TYPE_CHECKING

import torch

from devicecore.fork import rearm_after_fork

if TYPE_CHECKING:
    from devicecore.device import Device

# Those of OpenCV's types that some device of torch has not. Metal has no float64 at all, and torch
# has unsigned integers there only since 2.9; some of Intel's GPUs lack the unit for float64.
_TRIED = ("float64", "uint16", "uint32", "uint64")
_THIRD = 1 / 3  # another number in float32, so that a smaller type in disguise is no float64


class _MissingTypes:
    """What was found for each device."""

    def __init__(self) -> None:
        self._found: dict[tuple[str, int], frozenset[str]] = {}
        self._lock = threading.Lock()
        rearm_after_fork(self)

    def of(self, device: Device) -> frozenset[str]:
        """Return the types that *device* has not."""
        key = (device.name, device.attributes.incarnation)
        missing = self._found.get(key)
        if missing is None:
            missing = frozenset(dtype for dtype in _TRIED if not _has(device, dtype))
            with self._lock:
                self._found[key] = missing
        return missing

    def after_fork(self) -> None:
        """Take a lock of its own in a forked child."""
        self._lock = threading.Lock()


_missing_types = _MissingTypes()


def missing_types(device: Device | None) -> frozenset[str]:
    """Return the element types that *device* cannot hold or compute with; tries them once.

    Args:
        device: A device of torch's; None for one that has all types.

    Raises:
        DeviceError: The device failed, which says nothing about its types.
    """
    return frozenset() if device is None else _missing_types.of(device)


def lacks(missing: frozenset[str], dtype: str) -> bool:
    """Return whether a device without some types has not one of numpy's.

    Args:
        missing: What `missing_types` has found.
        dtype: numpy's name of it.
    """
    return dtype in missing or (dtype == "complex128" and "float64" in missing)


def why_lacking(missing: frozenset[str], error: Exception) -> str:
    """Return which type a framework's error says that a device has not; nothing for other errors.

    Args:
        missing: What `missing_types` has found.
        error: The error.
    """
    text = str(error)
    if operation := _NO_OPERATION.search(text):
        return f"torch has no operation {operation[1]} for the device"
    for dtype in sorted(missing):
        if re.search(rf"{dtype}|{_OTHER_NAMES.get(dtype, dtype)}", text, re.IGNORECASE):
            return f"it needs {dtype} for these arguments, and the device has none"
    return ""


# By each backend's words.
_OTHER_NAMES = {"float64": "fp64|double|complex128"}
_NO_OPERATION = re.compile(r"operator '([\w:.]+)' is not currently implemented")


def _has(device: Device, dtype: str) -> bool:
    kind: torch.dtype = getattr(torch, dtype)
    try:
        one = torch.ones(1, dtype=torch.int32, device=device.torch_device or "cpu").to(kind)
        if kind.is_floating_point:
            return bool((one / 3).item() == _THIRD)
        return bool(one.to(torch.int32).item() == 1)
    except Exception as error:  # each backend has an error of its own for it
        known = device.device_error(error)
        if known is not None:
            raise known from error
        return False
