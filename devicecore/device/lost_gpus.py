"""GPUs that were lost: a fallen GPU takes every device on it along, for the whole process."""

from __future__ import annotations

import threading
import weakref
from typing import Protocol

from devicecore.fork import rearm_after_fork


class OnGpu(Protocol):
    """A device on a GPU."""

    def retire(self, reason: str) -> None:
        """Refuse everything from now on, because of *reason*."""


class Gpu:
    """The devices on one GPU; it is there as long as one of them is."""

    def __init__(self) -> None:
        self.devices: weakref.WeakSet[OnGpu] = weakref.WeakSet()


class Gpus:
    """Which devices share a GPU, and which GPUs are lost."""

    def __init__(self) -> None:
        self._gpus: weakref.WeakValueDictionary[str, Gpu] = weakref.WeakValueDictionary()
        self._lost: dict[str, str] = {}
        self._lock = threading.Lock()
        rearm_after_fork(self)

    def join(self, device: OnGpu, physical_id: str) -> Gpu:
        """Put *device* on a GPU, which may be lost already; the device has to keep the GPU."""
        with self._lock:
            gpu = self._gpus.setdefault(physical_id, Gpu())
            gpu.devices.add(device)
            reason = self._lost.get(physical_id)
        if reason is not None:
            device.retire(reason)
        return gpu

    def lose(self, physical_id: str, reason: str) -> None:
        """Retire every device on the GPU, and every one that is still to come."""
        with self._lock:
            self._lost[physical_id] = reason
            gpu = self._gpus.get(physical_id)
            devices = list(gpu.devices) if gpu else []
        for device in devices:
            device.retire(reason)

    def after_fork(self) -> None:
        """Take a lock of its own in a forked child."""
        self._lock = threading.Lock()


_gpus = Gpus()


def gpus_of_process() -> Gpus:
    """Return the GPUs of this process."""
    return _gpus
