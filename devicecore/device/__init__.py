"""Devices: what runs kernels, what is known of it, and what it keeps."""

from devicecore.device.attributes import DeviceAttributes, DeviceLocality
from devicecore.device.device import Device

__all__ = ["Device", "DeviceAttributes", "DeviceLocality"]


def __dir__() -> list[str]:
    return sorted(__all__)
