"""The device that is current outside of all scopes."""

from __future__ import annotations

from typing import Any

from devicecore.scope.adapters import adapters
from devicecore.scope.parse_device import find, read
from devicecore.scope.scope_stack import OUTSIDE


def set_default_device(device: Any) -> None:
    """Set the device that is current outside of all scopes, in every thread of this process.

    The frameworks keep defaults of their own: only a scope changes those.

    Args:
        device: What a scope may be given; None for CPU:0 again.

    Raises:
        DeviceGoneError: It was closed, removed or lost.
        InvalidDeviceNameError: *device* is not a device name.
        NotLiveError: Its type does not work here.
        TypeError: It is nothing that names a device.
        UnknownDeviceError: There is no such device.
    """
    OUTSIDE.device = None if device is None else find(read(device), None, adapters())
