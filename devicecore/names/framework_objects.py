"""Devices as the frameworks have them as objects, read as names; no framework is imported."""

from __future__ import annotations

from typing import Any

from devicecore.errors import InvalidDeviceNameError
from devicecore.names.device_name import DeviceName


def name_of_object(given: object) -> str | DeviceName | None:
    """Return the name of the device that an object of a framework means, or None for other objects.

    Args:
        given: A ``torch.device``, a ``jax.Device``, a ``tf.config.LogicalDevice`` or
            ``PhysicalDevice``, a ``tf.DeviceSpec``, Paddle's ``Place`` or a ``cupy.cuda.Device``.

    Returns:
        A text, where registered types may still have their say in it, or a name.

    Raises:
        InvalidDeviceNameError: It is the place of no device.
    """
    kind = type(given)
    read = _READERS.get(kind.__module__.partition(".")[0])
    return None if read is None else read(given, kind.__name__)


def _of_torch(given: Any, kind: str) -> str | None:
    return str(given) if kind == "device" else None


def _of_jax(given: Any, _: str) -> DeviceName | None:
    if not hasattr(given, "platform"):
        return None
    version = str(getattr(given.client, "platform_version", ""))
    gpu = "ROCM" if "rocm" in version.lower() else "CUDA"
    device_type = gpu if given.platform in {"gpu", "cuda", "rocm"} else given.platform
    if given.process_index != given.client.process_index():
        return DeviceName("worker", 0, given.process_index, device_type, given.id)
    return DeviceName(device_type=device_type, index=given.client.local_devices().index(given))


def _of_tensorflow(given: Any, kind: str) -> str | DeviceName | None:
    if kind.startswith("DeviceSpec"):
        return DeviceName.parse(given.to_string(), dialect="tf-python")
    if kind in {"LogicalDevice", "PhysicalDevice"}:
        return str(given.name).replace("/physical_device:", "/device:")
    return None


def _of_paddle(given: Any, kind: str) -> str | DeviceName | None:
    """Return the name of a place, which prints as ``Place(gpu:0)``."""
    if not kind.endswith("Place"):
        return None
    text = str(given)
    word, _, index = text.removeprefix("Place(").removesuffix(")").partition(":")
    if word in {"gpu_pinned", "cpu"}:
        return DeviceName(device_type="CPU")
    if not index.isdecimal():
        raise InvalidDeviceNameError(text, 0, "it is the place of no device")
    return f"{'CUDA' if word == 'gpu' else word}:{index}"


def _of_cupy(given: Any, kind: str) -> DeviceName | None:
    return DeviceName(device_type="CUDA", index=int(given.id)) if kind == "Device" else None


_READERS = {
    "torch": _of_torch,
    "jax": _of_jax,
    "jaxlib": _of_jax,
    "tensorflow": _of_tensorflow,
    "paddle": _of_paddle,
    "cupy": _of_cupy,
}
