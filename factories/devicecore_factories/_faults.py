"""What the errors of torch, ONNX Runtime and their drivers mean for the device they came from."""

from __future__ import annotations

from typing import TYPE_CHECKING

from devicecore.errors import (
    DeviceCoreError,
    DeviceError,
    DeviceGoneError,
    NotLiveError,
    OutOfMemoryError,
    shorten,
)
from devicecore_factories._fault_texts import (
    DRIVER,
    FORKED,
    LOST,
    NO_DRIVER,
    NO_IMAGE,
    NO_LIBRARY,
    OUT_OF_MEMORY,
)

if TYPE_CHECKING:
    from devicecore.device import Device


def device_error(device: Device, error: Exception) -> DeviceError | None:
    """Return what *error* means for *device*; None if it is no matter of the device.

    A lost GPU takes its devices along.
    """
    if isinstance(error, OutOfMemoryError):
        # ONNX Runtime knows its provider, not our device.
        return None if error.device == device.name else OutOfMemoryError(device.name, error.detail)
    ours = isinstance(error, DeviceCoreError) and not isinstance(error, NotLiveError)
    if ours or not isinstance(error, RuntimeError):
        return None
    return _judged(device, error, str(error))


def _judged(device: Device, error: RuntimeError, text: str) -> DeviceError | None:
    if type(error).__name__ == "OutOfMemoryError" or OUT_OF_MEMORY.search(text):
        return OutOfMemoryError(device.name, first_line(error))
    if FORKED.search(text):
        return DeviceGoneError(device.name, "it was opened before this process was forked")
    if NO_IMAGE.search(text):
        reason = "it has no kernel for this GPU"
        return NotLiveError(device.name, "broken", reason, "install a build that has")
    if DRIVER.search(text) and LOST.search(text):
        return lost(device, error)
    if NO_DRIVER.search(text) or NO_LIBRARY.search(text):
        return NotLiveError(device.name, "broken", first_line(error))
    return None


def lost(device: Device, error: Exception) -> DeviceGoneError:
    """Take *device* and all others on its GPU out of use, and return the error that says so."""
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
