"""What the errors of torch, ONNX Runtime and their drivers mean for the device they came from."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from devicecore.errors import (
    DeviceCoreError,
    DeviceError,
    DeviceGoneError,
    NotLiveError,
    OutOfMemoryError,
    shorten,
)

if TYPE_CHECKING:
    from devicecore.device import Device

_OUT_OF_MEMORY = re.compile(
    r"(CUDA|HIP|XPU|MPS|Metal)\b.*out of memory|(CUBLAS|CUDNN|HIPBLAS|MIOPEN)\w*_ALLOC_FAILED",
    re.IGNORECASE | re.DOTALL,
)
_DRIVER = re.compile(r"\b(CUDA|HIP|XPU|SYCL|MPS|Metal|WebGPU)\b", re.IGNORECASE)
# After one of these the context refuses all further work, so the card is lost to this process.
_LOST = re.compile(
    r"illegal memory access|unspecified launch failure|device-side assert|misaligned address"
    r"|illegal instruction|invalid program counter|hardware stack error|uncorrectable ECC"
    r"|GPU is lost|fallen off the bus|device.lost|launch timed out"
    r"|CUDA failure (700|702|719|999)\b",
    re.IGNORECASE,
)
_FORKED = re.compile(r"re-initialize \w+ in forked subprocess", re.IGNORECASE)
_NO_DRIVER = re.compile(
    r"Found no NVIDIA driver|driver on your system is too old|driver initialization failed"
    r"|No (CUDA|HIP|XPU) GPUs are available|no \w+-capable device",
    re.IGNORECASE,
)
_NO_IMAGE = re.compile(r"no kernel image is available", re.IGNORECASE)


def device_error(device: Device, error: Exception) -> DeviceError | None:
    """Return what *error* means for *device*; None if it is no matter of the device.

    A lost card takes its devices along.
    """
    if isinstance(error, OutOfMemoryError):
        # ONNX Runtime knows its provider, not our device.
        return None if error.device == device.name else OutOfMemoryError(device.name, error.detail)
    ours = isinstance(error, DeviceCoreError) and not isinstance(error, NotLiveError)
    if ours or not isinstance(error, RuntimeError):
        return None
    return _judged(device, error, str(error))


def _judged(device: Device, error: RuntimeError, text: str) -> DeviceError | None:
    if type(error).__name__ == "OutOfMemoryError" or _OUT_OF_MEMORY.search(text):
        return OutOfMemoryError(device.name, first_line(error))
    if _FORKED.search(text):
        return DeviceGoneError(device.name, "it was opened before this process was forked")
    if _NO_IMAGE.search(text):
        reason = "it has no kernel for this card"
        return NotLiveError(device.name, "broken", reason, "install a build that has")
    if _NO_DRIVER.search(text):
        return NotLiveError(device.name, "broken", first_line(error))
    return lost(device, error) if _DRIVER.search(text) and _LOST.search(text) else None


def lost(device: Device, error: Exception) -> DeviceGoneError:
    """Take *device* and all others on its card out of use, and return the error that says so."""
    reason = first_line(error)
    if device.device_class == "CPU":  # the host itself does not go with it
        device.retire(reason)
    else:
        device.lose(reason)
    return DeviceGoneError(device.name, reason)


def first_line(error: BaseException) -> str:
    """Return the first line of what *error* says; torch's advice on debugging comes after it."""
    lines = str(error).strip().splitlines()
    return shorten(lines[0], 300) if lines else type(error).__name__
