"""Where a transfer goes: the device in whose memory things shall lie, as torch calls it."""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING, Any

from attrs import frozen

from devicecore.device import Device
from devicecore.errors import (
    DeviceGoneError,
    InvalidDeviceNameError,
    NotLiveError,
    UnknownDeviceError,
)
from devicecore.names import DEVICE_CLASSES, DEVICE_TYPES, DeviceName
from devicecore.runtime import default_runtime, host_cpu

if TYPE_CHECKING:
    from devicecore.errors import DeviceCoreError

# Copies to and from these may be queued; the others block, since queued ones race there.
QUEUEING = frozenset({"cuda", "xpu"})
_INDEX = re.compile("[0-9]{1,2}")
_HOST_WORDS = frozenset({"cpu", "cpu:0", "CPU", "CPU:0"})


@frozen
class Target:
    """A place that things are moved to.

    Attributes:
        name: What was asked for.
        device: The device that owns the memory; None for one that only torch knows.
        torch_device: The same as a ``torch.device`` that equals the one of tensors there; None
            where torch is not loaded or has no tensors there.
        refusal: Why torch has no tensors there, if it has none.
    """

    name: str
    device: Device | None
    torch_device: Any = None
    refusal: DeviceCoreError | None = None

    @property
    def is_host(self) -> bool:
        """Whether it is the host's memory."""
        return self.device is not None and self.device.reads_host_memory

    @property
    def queues(self) -> bool:
        """Whether copies to it may be queued."""
        return self.torch_device is not None and self.torch_device.type in QUEUEING


def target_of(device: object) -> Target:
    """Return where *device* keeps its memory.

    Args:
        device: A device, its name, a `DeviceName`, or a ``torch.device``.

    Raises:
        InvalidDeviceNameError: It is no name of a device.
        NotLiveError: Its type does not work here.
        UnknownDeviceError: There is no such device.
        DeviceGoneError: It was closed or lost.
    """
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(device, torch.device):
        device = str(device)
    if isinstance(device, str) and device in _HOST_WORDS:
        found = host_cpu()
    else:
        if torch is not None and (known := _known_to_torch_alone(torch, device)) is not None:
            return Target(str(device), None, known)
        found = _device(device)
    memory = _memory_of(found)
    if memory.gone:
        raise DeviceGoneError(memory.name, memory.gone)
    if torch is None:
        return Target(str(device), memory)
    return _for_torch(torch, str(device), memory)


def _device(device: object) -> Device:
    """Return the device, the current one of its type where an index is absent."""
    if isinstance(device, Device):
        return device
    runtime = default_runtime()
    if not isinstance(device, (str, DeviceName)):
        raise InvalidDeviceNameError(repr(device), 0, "a name is a str")
    parsed = runtime.parsed(device)
    if parsed.device_type is None:
        raise InvalidDeviceNameError(str(device), 0, "it says no device type")
    found = runtime.device(device)
    if parsed.index is None and parsed.device_type not in DEVICE_CLASSES:
        current = _current_index(found)
        if current is not None and current != found.parsed_name.index:
            return runtime.device(parsed.with_index(current))
    return found


def _current_index(device: Device) -> int | None:
    """Return the index of torch's current device of that kind, if torch has opened one."""
    kind = (device.torch_device or "").partition(":")[0]
    backend = getattr(sys.modules.get("torch"), kind, None) if kind in QUEUEING else None
    if backend is None or not backend.is_initialized():
        return None
    return int(backend.current_device())


def _memory_of(device: Device) -> Device:
    memory = device.memory_device
    if memory is device and device.memory is not None:  # the manager has not linked it yet
        name = DeviceName(device_type=device.memory.device_type, index=device.memory.index)
        return default_runtime().device(name)
    if not memory.is_local:
        reason = "it is in another process"
        raise NotLiveError(memory.name, "excluded", reason, "move the data where that process runs")
    return memory


def _for_torch(torch: Any, name: str, memory: Device) -> Target:
    word: str | None = "cpu" if memory.reads_host_memory else memory.torch_device
    refusal: DeviceCoreError | None = None
    if word is None and memory in default_runtime().manager:
        try:
            word = default_runtime().device(memory.parsed_name, "torch").torch_device
        except (NotLiveError, UnknownDeviceError) as error:
            refusal = error
    if word is None:
        reason = "torch has no tensors there"
        absent = NotLiveError(f"{memory.name} for torch", "absent", reason)
        return Target(name, memory, None, refusal or absent)
    return Target(name, memory, _canonical(torch, torch.device(word)))


def _canonical(torch: Any, device: Any) -> Any:
    """Return *device* as tensors on it say: the host without an index, others with one."""
    if device.type in {"cpu", "meta"}:
        return torch.device(device.type)
    return torch.device(device.type, device.index or 0)


def _known_to_torch_alone(torch: Any, device: object) -> Any:
    """Return the ``torch.device`` of a type that only torch has, or None."""
    text = str(device) if isinstance(device, str) else ""
    kind, _, index = text.partition(":")
    if not kind.isidentifier() or kind.upper() in DEVICE_TYPES | DEVICE_CLASSES:
        return None
    if index and not _INDEX.fullmatch(index):  # torch cuts an index to 8 bits
        return None
    if kind.casefold() in {each.casefold() for each in default_runtime().registry.known_types}:
        return None
    try:
        found = torch.device(text)
    except RuntimeError:
        return None
    available = getattr(getattr(torch, kind, None), "is_available", None)
    usable = kind == "meta" or (available is not None and available())
    return _canonical(torch, found) if usable else None
