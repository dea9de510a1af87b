"""The devices of this process: the host at once, every other one when it is first asked for."""

from __future__ import annotations

import threading
from contextlib import suppress
from typing import TYPE_CHECKING

from devicecore.device import Device
from devicecore.device_factory import DeviceOptions, default_registry
from devicecore.device_factory.device_creation import devices_of_type, host_device
from devicecore.device_mgr import LOCAL_TASK, DeviceMgr
from devicecore.errors import (
    DeviceConflictError,
    InvalidDeviceNameError,
    NotLiveError,
    UnknownDeviceError,
)
from devicecore.fork import rearm_after_fork
from devicecore.names import DEVICE_CLASSES, meant_framework, spelled

if TYPE_CHECKING:
    from devicecore.device_factory import FactoryRegistry
    from devicecore.names import DeviceName


class _FillingMgr(DeviceMgr):
    """The manager of a `Runtime`: what is looked up by name is asked for there."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        host = host_device(runtime.registry, LOCAL_TASK)
        super().__init__([host], registry=runtime.registry)

    def _lookup(self, name: object, framework: str | None) -> Device:
        # What is not live or not known is told by the manager, with the names that there are.
        with suppress(NotLiveError, UnknownDeviceError, InvalidDeviceNameError):
            parsed = self._runtime.make(name, framework)
            if found := self.find_devices(parsed, framework):
                return found[0]
        return self._held(name, framework)

    def held(self, name: object, framework: str | None) -> Device:
        """Return the device that answers to *name*, of those that were made by now."""
        return self._held(name, framework)


class Runtime:
    """A manager that fills itself: asking for a device probes its type, and no other.

    Args:
        registry: Whose factories; None for the default registry.
    """

    def __init__(self, registry: FactoryRegistry | None = None) -> None:
        self.registry: FactoryRegistry = registry or default_registry()
        self._manager: _FillingMgr | None = None
        self._lock = threading.Lock()
        rearm_after_fork(self)

    @property
    def manager(self) -> DeviceMgr:
        """The manager, which holds the host from the start and never swaps it."""
        return self._filled

    @property
    def _filled(self) -> _FillingMgr:
        if self._manager is None:
            made = _FillingMgr(self)
            with self._lock:
                if self._manager is None:
                    self._manager = made
            if self._manager is not made:  # another thread was faster
                made.close()
        return self._manager

    def parsed(self, name: object) -> DeviceName:
        """Return *name* as a value; the registered types count in any case.

        Args:
            name: Whatever names a device; see `devicecore.names.spelled`.

        Raises:
            InvalidDeviceNameError: It is not a device name.
        """
        return spelled(name, self.registry.known_types)

    def device(self, name: object, framework: str | None = None) -> Device:
        """Return the device that answers to *name*, made on first use if its factory is live.

        Args:
            name: Whatever names a device, such as ``"cuda:1"``, ``"gpu"`` or a ``torch.device``; a
                `Device` is returned as it is.
            framework: What it must be live for, ``"torch"`` or ``"onnx"``; None for anything.

        Raises:
            InvalidDeviceNameError: *name* is not a device name.
            NotLiveError: Its type does not work here, or not for *framework*.
            UnknownDeviceError: There is no such device.
            ValueError: *framework* is misspelt.
        """
        if isinstance(name, Device):
            return name
        parsed = self.make(name, framework)
        return self._filled.held(name if isinstance(name, str) else parsed, framework)

    def make(self, name: object, framework: str | None = None) -> DeviceName:
        """Make the devices of the type, or of the class, of *name*; return it as a value.

        Args:
            name: Whatever names a device.
            framework: See `device`.

        Raises:
            InvalidDeviceNameError: *name* is not a device name.
            NotLiveError: Its type does not work here, or not for *framework*.
            UnknownDeviceError: Nobody registered the type.
            ValueError: *framework* is misspelt.
        """
        framework = meant_framework(framework)
        parsed = self.parsed(name)
        device_type = parsed.device_type
        if device_type in DEVICE_CLASSES and device_type not in self.registry.known_types:
            self._fill_class(framework)
        elif device_type is not None:
            self._fill_type(device_type, framework)
        return parsed

    def _fill_class(self, framework: str | None) -> None:
        for device_type in self.registry.device_types:
            try:
                self.fill(device_type, framework)
            except NotLiveError:
                continue

    def _fill_type(self, device_type: str, framework: str | None) -> None:
        try:
            self.fill(device_type, framework)
        except NotLiveError:
            if device_type != "CUDA":
                raise
            # To torch's HIP builds a ROCm GPU is called "cuda".
            try:
                self.fill("ROCM", framework)
            except (NotLiveError, UnknownDeviceError):
                pass
            else:
                return
            raise

    def fill(self, device_type: str, framework: str | None = None) -> None:
        """Make the devices of one type, unless they are here and serve *framework* already.

        Raises:
            NotLiveError: The type does not work here, or not for *framework*.
            UnknownDeviceError: Nobody registered the type.
        """
        here = [each for each in self._of_type(device_type) if not each.gone]
        if here and (framework is None or all(framework in each.frameworks for each in here)):
            return
        self.registry.get_factory(device_type, framework)
        asked = () if framework is None else (framework,)
        options = DeviceOptions(frameworks=asked)
        made = devices_of_type(self.registry, device_type, options, LOCAL_TASK)
        on_lost_gpus = [device for device in made if device.gone]
        if len(on_lost_gpus) == len(made):
            raise NotLiveError(device_type, "broken", made[0].gone)
        for device in made:
            if device not in on_lost_gpus:
                self._keep(device)

    def _keep(self, device: Device) -> None:
        """Take *device* in, or let the one of its name that is here serve what it serves."""
        try:
            self.manager.add_devices([device])
        except DeviceConflictError:
            known = self.manager.lookup_device(device.name)
            if known.gone:
                self.manager.remove_devices([known])
                self.manager.add_devices([device])
            else:
                known.extend(device)
                device.close()

    def _of_type(self, device_type: str) -> list[Device]:
        return [each for each in self.manager.list_devices() if each.device_type == device_type]

    def after_fork(self) -> None:
        """Take a lock of its own in a forked child."""
        self._lock = threading.Lock()


_default = Runtime()


def default_runtime() -> Runtime:
    """Return the runtime of this process."""
    return _default


def default_manager() -> DeviceMgr:
    """Return the manager of this process: CPU:0, and whatever was asked for so far.

    `DeviceMgr.lookup_device` and the names of a policy ask: they probe the type that they name,
    once, and no other. What only looks at the devices that are here, such as `list_devices`, ``in``
    and the policy ``"auto"``, probes nothing.
    """
    return _default.manager


def host_cpu() -> Device:
    """Return CPU:0 of this process; nothing is probed for it."""
    return _default.manager.lookup_device("CPU:0")
