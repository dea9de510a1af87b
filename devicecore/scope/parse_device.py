"""What a scope may be given, and which device that is once the scope is entered."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from attrs import evolve

from devicecore.device import Device
from devicecore.errors import (
    DeviceGoneError,
    InvalidDeviceNameError,
    NotLiveError,
    UnknownDeviceError,
)
from devicecore.names import DEVICE_CLASSES, DEVICE_TYPES, DeviceName, meant_by
from devicecore.runtime import default_runtime
from devicecore.scope.scope_stack import open_around

if TYPE_CHECKING:
    from devicecore.frameworks.base.adapter import Adapter
    from devicecore.scope.scope_stack import Frame

_SHORT = re.compile(r"([A-Za-z][A-Za-z0-9_]*)(?::([0-9]{1,9}))?")

# Devices that no manager holds, because a framework alone knows them; one for each name.
_foreign: dict[DeviceName, Device] = {}

# The types of which a framework can make one device the current one.
_GPUS = frozenset({"CUDA", "ROCM", "XPU"})


def read(given: Any) -> DeviceName | Device:
    """Return what *given* means as far as that can be said without looking for it.

    Args:
        given: A name, a `DeviceName`, a `Device`, the index of a GPU, or the object that torch,
            JAX, TensorFlow, Paddle or CuPy have for a device.

    Raises:
        InvalidDeviceNameError: It writes no device name.
        TypeError: It is nothing of these.
    """
    if isinstance(given, Device):
        return given
    meant = meant_by(given)
    if meant is None:
        msg = f"invalid device {given!r}: expected a name such as 'cuda:1', an index, or a Device"
        raise TypeError(msg)
    name = _read_name(meant)
    if name.device_type is None:
        raise InvalidDeviceNameError(str(given), 0, "a scope needs a type of device")
    if name.job is not None and not isinstance(given, str | DeviceName):
        return Device(name, device_class="GPU", is_local=False)  # JAX's, of another process
    return name


@lru_cache(256)
def _read_name(text: str | DeviceName) -> DeviceName:
    """Return the name, also of a type that nobody has brought yet: its plug-in may come later."""
    try:
        return default_runtime().parsed(text)
    except InvalidDeviceNameError:
        found = _SHORT.fullmatch(text) if isinstance(text, str) else None
        if found is None:
            raise
        return DeviceName(device_type=found[1], index=None if found[2] is None else int(found[2]))


def _spelled(name: DeviceName) -> DeviceName:
    """Return *name* with its type in the case in which it was registered meanwhile."""
    if name.device_type is None or name.device_type in DEVICE_TYPES:
        return name
    folded = name.device_type.casefold()
    types = default_runtime().registry.known_types
    known = next((each for each in types if each.casefold() == folded), name.device_type)
    return evolve(name, device_type=known)


def find(
    wanted: DeviceName | Device, around: Frame | None, adapters: tuple[Adapter, ...]
) -> Device:
    """Return the device that *wanted* means, for a scope that is entered inside *around*.

    An absent index means that of a device of the type in a scope around, else the one that a
    framework has made current, else the first.

    Raises:
        DeviceGoneError: It was closed, removed or lost.
        NotLiveError: Its type does not work here, and no framework that is imported has it.
        UnknownDeviceError: There is no such device.
    """
    found = wanted if isinstance(wanted, Device) else _named(wanted, around, adapters)
    if found.gone:
        raise DeviceGoneError(found.name, found.gone)
    return found


def _named(wanted: DeviceName, around: Frame | None, adapters: tuple[Adapter, ...]) -> Device:
    wanted = _spelled(wanted)
    if wanted.index is None and wanted.device_type is not None:
        if found := of_type(wanted.device_type, around):
            return found
        wanted = wanted.with_index(current_index(wanted.device_type, adapters))
    return _lookup(wanted, adapters)


def _lookup(wanted: DeviceName, adapters: tuple[Adapter, ...]) -> Device:
    runtime = default_runtime()
    kind = wanted.device_type
    is_ours = kind in DEVICE_TYPES | DEVICE_CLASSES or kind in runtime.registry.known_types
    if not is_ours and (foreign := _of_framework(wanted, adapters)):
        return foreign  # at once: an error that says what there is takes much longer
    try:
        found = runtime.device(wanted)
    except (NotLiveError, UnknownDeviceError):
        if is_ours and (foreign := _of_framework(wanted, adapters)):
            return foreign
        raise
    if wanted.index is None and kind != found.device_type:  # the first of a class
        memory = found.memory_device
        index = current_index(memory.device_type, adapters)
        if index not in {None, memory.parsed_name.index}:
            return runtime.device(found.parsed_name.with_index(index))
    return found


def current_index(device_type: str, adapters: tuple[Adapter, ...]) -> int | None:
    """Return which device of a type a framework has made current, None where none cares."""
    indices = (adapter.current_index(device_type) for adapter in adapters)
    return next((index for index in indices if index is not None), None)


def gpu_of(device: Device, adapters: tuple[Adapter, ...]) -> tuple[str, int | None] | None:
    """Return which GPU is current, of the type on whose memory *device* computes.

    None where no framework has such.
    """
    kind = device.memory_device.device_type
    return (kind, current_index(kind, adapters)) if kind in _GPUS else None


def is_class(device_type: str) -> bool:
    """Return whether it is the name of a class of devices, rather than of a type."""
    return device_type in DEVICE_CLASSES and device_type != "CPU"


def of_type(device_type: str, around: Frame | None) -> Device | None:
    """Return the device of the innermost open scope that has this type or is of this class."""
    of_class = is_class(device_type)
    for frame in open_around(around):
        device: Device = frame.device
        if device.device_type == device_type or (of_class and device.device_class == device_type):
            return device
    return None


def _of_framework(name: DeviceName, adapters: tuple[Adapter, ...]) -> Device | None:
    """Return a device that a framework knows and devicecore does not, in no manager."""
    if name.device_type is None or name.local != name:
        return None
    full = name.with_index(name.index or 0)
    key = evolve(full, device_type=name.device_type.casefold())  # no two differ by case alone
    by = [adapter for adapter in adapters if adapter.knows(full)]
    if not by:
        return None
    if (known := _foreign.get(key)) is not None:
        return known
    torch_name = next((found for each in by if (found := each.torch_name(full))), None)
    families = {"CPU": "CPU", "meta": "CPU", "CUDA": "GPU", "ROCM": "GPU"}
    device = Device(
        full,
        device_class=families.get(name.device_type, "NPU"),
        description=f"known to {' and '.join(adapter.title for adapter in by)}",
        torch_device=torch_name,
    )
    return _foreign.setdefault(key, device)
