"""Where a transfer goes: the device in whose memory things shall lie, as torch calls it."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

from attrs import frozen

from devicecore.errors import (
    DeviceGoneError,
    NotLiveError,
    UnknownDeviceError,
)
from devicecore.frameworks import loaded
from devicecore.names import DeviceName
from devicecore.runtime import default_runtime, host_cpu
from devicecore.scope.adapters import adapters
from devicecore.scope.device_lookup import look
from devicecore.scope.parse_device import read
from devicecore.scope.scope_stack import OUTSIDE, innermost

if TYPE_CHECKING:
    from devicecore.device import Device
    from devicecore.errors import DeviceCoreError

# Copies to and from these may be queued; the others block, since queued ones race there.
QUEUEING = frozenset({"cuda", "xpu"})
# Most often it is the host, which is worth a short way; without an index a scope has its say.
_FIRST_HOST = frozenset({"cpu:0", "CPU:0"})
_HOST = _FIRST_HOST | {"cpu", "CPU"}
# What a text says never changes; that nobody has brought a type takes long to find out.
_read_text = lru_cache(256)(read)


@frozen
class Target:
    """A place that things are moved to.

    Attributes:
        name: What was asked for.
        device: The device that owns the memory; None where nothing is.
        torch_device: The same as a ``torch.device`` that equals the one of tensors there; None
            where torch is not loaded or has no tensors there.
        refusal: Why torch has no tensors there, if it has none.
    """

    name: str
    device: Device | None = None
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
        device: Anything that names a device for a scope.

    Raises:
        InvalidDeviceNameError: It is no name of a device.
        TypeError: It is nothing that names a device.
        NotLiveError: Its type does not work here.
        UnknownDeviceError: There is no such device.
        DeviceGoneError: It was closed or lost.
    """
    torch = loaded("torch")
    memory = _memory_of(_device(device))
    if memory.gone:
        raise DeviceGoneError(memory.name, memory.gone)
    if torch is None:
        return Target(str(device), memory)
    return _for_torch(torch, str(device), memory)


def _device(device: object) -> Device:
    """Return the device that a scope would find by it."""
    around = innermost.get()
    if isinstance(device, str) and device in (_HOST if around is OUTSIDE else _FIRST_HOST):
        return host_cpu()
    try:
        wanted = _read_text(device) if isinstance(device, str) else read(device)
        return look(wanted, None, around, adapters()).device
    except UnknownDeviceError:
        # A scope waits for a plug-in that may bring the type; now is too late for one.
        if isinstance(device, str):
            default_runtime().parsed(device)
        raise


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
