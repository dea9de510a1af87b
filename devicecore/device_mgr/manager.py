"""`DeviceMgr`: owns devices, and finds them by name, by type, and for a task."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from devicecore.device import Device
from devicecore.device_factory import DeviceOptions, default_registry
from devicecore.device_mgr import lookup
from devicecore.device_mgr.aliases import Aliases
from devicecore.device_mgr.routing import Router
from devicecore.errors import (
    DeviceConflictError,
    DeviceCoreError,
    HostCpuError,
    InvalidDeviceNameError,
    UnknownDeviceError,
)
from devicecore.fork import rearm_after_fork
from devicecore.names import DeviceName, meant_framework, spelled, type_named
from devicecore.resources import DEFAULT_CONTAINER

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from devicecore.device import DeviceAttributes
    from devicecore.device_factory import FactoryRegistry
    from devicecore.ledger import Ledger

LOCAL_TASK = "/job:localhost/replica:0/task:0"
"""What the names of this process's devices start with."""


class DeviceMgr:
    """Owns devices, and finds them.

    Adding and removing are all or nothing. Devices that are removed, or owned when the manager is
    closed, are closed with it. May be used from any thread.

    Args:
        devices: The first devices.
        registry: Tells priorities, and why a type is missing; None for the default registry.
        ledger: Where moves off the first choice are written; None for the default ledger.

    Raises:
        DeviceConflictError: Two devices have one name.
    """

    def __init__(
        self,
        devices: Iterable[Device] = (),
        *,
        registry: FactoryRegistry | None = None,
        ledger: Ledger | None = None,
    ) -> None:
        self._registry = registry or default_registry()
        self._devices: dict[str, Device] = {}
        # Those whose arguments lie in another device's memory.
        self._borrowers: dict[str, Device] = {}
        self._aliases = Aliases()
        self._by_alias = self._aliases.by_text
        self._incarnations: set[int] = set()
        self._sorted: tuple[Device, ...] | None = ()
        self._lock = threading.Lock()
        self._router = Router(self, ledger)
        rearm_after_fork(self)
        self.add_devices(devices)

    @classmethod
    def create(
        cls, options: DeviceOptions | None = None, registry: FactoryRegistry | None = None
    ) -> DeviceMgr:
        """Return a manager with the devices of all live factories, the CPU's first.

        Probes what was not tried yet, all at once.

        Args:
            options: Which devices; None for all.
            registry: Whose factories; None for the default registry.

        Raises:
            NotLiveError: Not even a CPU device could be made.
        """
        source = registry or default_registry()
        made = source.add_devices(options or DeviceOptions(), LOCAL_TASK)
        return cls(made, registry=registry)

    def lookup_device(self, name: object, framework: str | None = None) -> Device:
        """Return the device that answers to *name*.

        An exact alias counts first; then the name is parsed, with unset parts for "any" (the first
        device in order) and types in any case. ``GPU`` and ``NPU`` are families: ``GPU:1`` is the
        best device on the second GPU.

        Args:
            name: A name, or whatever else means a device, such as a ``torch.device``; a `Device`
                by its name.
            framework: For a family, what its devices must be live for, ``"torch"`` or ``"onnx"``;
                None for anything.

        Raises:
            UnknownDeviceError: None does; says which would, and why a type is missing.
            ValueError: *framework* is misspelt, or no text.
        """
        if framework is not None:
            meant_framework(framework)
        try:
            return self._by_alias[name]  # type: ignore[index]  # a DeviceName is no key, and misses
        except (KeyError, TypeError):  # TypeError: what cannot be a key is no name either
            return self._lookup(name, framework)

    def _lookup(self, name: object, framework: str | None) -> Device:
        """Find what no alias named; a manager that makes devices when they are named does so."""
        return self._held(name, framework)

    def _held(self, name: object, framework: str | None = None) -> Device:
        if isinstance(name, str) and name in self._by_alias:
            return self._by_alias[name]
        devices = self.list_devices()
        try:
            parsed = self._parsed(name, devices)
        except InvalidDeviceNameError as error:
            raise UnknownDeviceError(str(name), self._known(), error.reason) from None
        found = self.find_devices(parsed, framework)
        if not found:
            raise UnknownDeviceError(
                str(name), self._known(), lookup.why_missing(parsed, devices, self._registry)
            )
        return found[0]

    def find_devices(self, pattern: object, framework: str | None = None) -> list[Device]:
        """Return the devices that *pattern* means, in order; for a family, one for each GPU.

        Args:
            pattern: A name whose unset parts mean "any", or what else `lookup_device` takes.
            framework: See `lookup_device`.

        Raises:
            InvalidDeviceNameError: *pattern* is not a device name.
            ValueError: *framework* is misspelt.
        """
        devices = self.list_devices()
        framework = meant_framework(framework)
        name = self._parsed(pattern, devices)
        if lookup.is_class(name.device_type, devices):
            live = [each for each in devices if framework is None or framework in each.frameworks]
            return lookup.of_class(name, live, self.rank)
        found = lookup.matching(name, devices)
        if not found and name.device_type == "CUDA":
            # To torch's HIP builds a ROCm GPU is called "cuda".
            on_rocm = lookup.matching(
                DeviceName(name.job, name.replica, name.task, "ROCM", name.index), devices
            )
            return [each for each in on_rocm if (each.torch_device or "").startswith("cuda")]
        return found

    def devices_by_type(self, type_or_class: str) -> list[Device]:
        """Return the devices of a type in order, or one for each GPU of a family."""
        devices = self.list_devices()
        named = type_named(type_or_class, dict.fromkeys(each.device_type for each in devices))
        return self.find_devices(DeviceName(device_type=named))

    def num_device_type(self, type_or_class: str) -> int:
        """Return how many devices a type has, or how many GPUs a family."""
        devices = self.devices_by_type
        return self._aliases.count(type_or_class, lambda: len(devices(type_or_class)))

    @property
    def num_devices(self) -> int:
        """How many devices there are."""
        return len(self._devices)

    def list_devices(self) -> tuple[Device, ...]:
        """Return all devices, sorted by name."""
        listed = self._sorted
        if listed is None:
            with self._lock:
                listed = tuple(sorted(self._devices.values(), key=lambda each: each.parsed_name))
                self._sorted = listed
        return listed

    def list_device_attributes(self) -> list[DeviceAttributes]:
        """Return the attributes of all devices, sorted by name."""
        return [device.attributes for device in self.list_devices()]

    def contains_device(self, incarnation: int) -> bool:
        """Return whether the device of that incarnation is here."""
        return incarnation in self._incarnations

    @property
    def host_cpu(self) -> Device | None:
        """The host, which is the first device of type CPU with index 0, or None."""
        return lookup.host_cpu(self.list_devices())

    def siblings(self, device: Device) -> list[Device]:
        """Return the other devices on the same GPU, the best first."""
        return sorted(
            (
                other
                for other in self.list_devices()
                if other is not device
                and other.physical_id is not None
                and other.physical_id == device.physical_id
            ),
            key=self.rank,
        )

    def rank(self, device: Device) -> tuple[int, str, bool, DeviceName]:
        """Return what sorts the better device first: priority, type, local ones, name."""
        priority = device.priority
        if priority is None:
            priority = self._registry.device_priority(device.device_type)
        return (-priority, device.device_type, not device.is_local, device.parsed_name)

    def best_device(
        self, op: str | None = None, framework: str | None = None, policy: str = "auto"
    ) -> Device:
        """Return the device that goes first.

        Args:
            op: Only devices with a kernel of this operation.
            framework: Only devices that are live for ``"torch"`` or ``"onnx"``.
            policy: ``"auto"`` for all by priority, ``"prefer:cuda:1,cpu"`` for those of a list in
                its order, ``"require:cuda"`` for one and no other.

        Raises:
            UnknownDeviceError: A required device is not here.
            NoKernelError: No device has a kernel of *op*.
            NotLiveError: No device is live for *framework*.
            InvalidDeviceNameError: *policy* has a name that is none.
            ValueError: *policy* is none, or *framework* is misspelt.
        """
        return self._router.best(op, meant_framework(framework), policy)

    def compute(self, kernel: Any, /, *args: Any, policy: str = "auto", **kwargs: Any) -> Any:
        """Run *kernel* on the best device that has it and reads the arguments where they lie.

        Moves no argument. A `DeviceError` of a pure kernel lets the next device try; every move
        off the first choice is in the ledger.

        Args:
            kernel: The name of an operation, a `Kernel`, or a callable; see `Device.compute`.
            args: The kernel's arguments.
            policy: See `best_device`.
            kwargs: More arguments of the kernel.

        Raises:
            NoKernelError: No device has a kernel that takes these arguments where they lie.
            DeviceError: The last device's error, where no other could take over.
            FallbackForbiddenError: The ledger does not allow the move.
            UnknownDeviceError: A required device is not here.
        """
        return self._router.compute(kernel, policy, args, kwargs)

    def add_devices(self, devices: Iterable[Device]) -> None:
        """Add *devices*, all of them or, on an error, none.

        Raises:
            DeviceConflictError: A name is taken, differs from one that is only by case, or a device
                is gone.
        """
        added = list(devices)
        for device in added:
            _check_is_device(device)
            if device.gone:
                raise DeviceConflictError(device.name, device.gone)
        with self._lock:
            self._aliases.check(added)
            for device in added:
                self._aliases.add(device)
                self._devices[device.name] = device
                self._incarnations.add(device.attributes.incarnation)
                if device.memory is not None:
                    self._borrowers[device.name] = device
            self._changed()

    def remove_devices(self, devices: Iterable[object]) -> None:
        """Remove and close *devices*, all of them or, on an error, none.

        Args:
            devices: Devices, or names of devices.

        Raises:
            UnknownDeviceError: One is not here; another device of the same name does not count.
            HostCpuError: One is the host CPU, and others would stay.
            DeviceConflictError: One is given twice, or owns the memory of one that would stay.
        """
        removed = [
            device if isinstance(device, Device) else self._held(device) for device in devices
        ]
        with self._lock:
            self._check_removal(removed)
            for device in removed:
                self._aliases.remove(device)
                del self._devices[device.name]
                self._borrowers.pop(device.name, None)
                self._incarnations.discard(device.attributes.incarnation)
                device.retire("it was removed from its manager")
            self._changed()
        for device in removed:
            device.close()

    def clear_containers(self, containers: Sequence[str] = ()) -> None:
        """Drop the cached state of all devices, of the named containers or of the default one."""
        for device in self.list_devices():
            for container in containers or (DEFAULT_CONTAINER,):
                device.resource_mgr.clear(container)

    def close(self) -> None:
        """Remove and close all devices."""
        with self._lock:
            devices = list(self._devices.values())
            for device in devices:
                self._aliases.remove(device)
            self._devices.clear()
            self._borrowers.clear()
            self._incarnations.clear()
            self._changed()
        for device in devices:
            device.close()

    def _check_removal(self, removed: Sequence[Device]) -> None:
        host = lookup.host_cpu(sorted(self._devices.values(), key=lambda each: each.parsed_name))
        seen: set[int] = set()
        for device in removed:
            if self._devices.get(device.name) is not device:
                raise UnknownDeviceError(device.name, (), "it is not in this manager")
            if id(device) in seen:
                raise DeviceConflictError(device.name, "it is given twice")
            seen.add(id(device))
        stays = [device for device in self._devices.values() if id(device) not in seen]
        if host is not None and id(host) in seen and stays:
            raise HostCpuError(host.name)
        for device in stays:
            if id(device.memory_device) in seen:
                reason = f"{device.name} keeps its arguments in its memory"
                raise DeviceConflictError(device.memory_device.name, reason)

    def _changed(self) -> None:
        """Bring everything derived up to date; the lock is held."""
        self._sorted = None
        for device in self._borrowers.values():
            if device.memory is not None:
                target = device.memory.fill(device.parsed_name)
                device.link_memory(self._devices.get(str(target)))
        self._router.forget()

    def debug_string(self) -> str:
        """Return the names of all devices, a line each."""
        return "\n".join(device.name for device in self.list_devices())

    def device_mapping_string(self) -> str:
        """Return name and description of all devices that have one, a line each."""
        return "\n".join(
            f"{device.name} -> {device.attributes.description}"
            for device in self.list_devices()
            if device.attributes.description
        )

    def __iter__(self) -> Iterator[Device]:
        return iter(self.list_devices())

    def __len__(self) -> int:
        return len(self._devices)

    def __contains__(self, device: object) -> bool:
        if isinstance(device, Device):
            return self._devices.get(device.name) is device
        try:
            self._held(device)
        except DeviceCoreError:
            return False
        return True

    def __repr__(self) -> str:
        return f"<DeviceMgr of {len(self)}>"

    def after_fork(self) -> None:
        """Take a lock of its own in a forked child."""
        self._lock = threading.Lock()
        self._router.forget()

    def _parsed(self, name: object, devices: Iterable[Device]) -> DeviceName:
        if isinstance(name, Device):
            return name.parsed_name
        try:
            return spelled(name, dict.fromkeys(device.device_type for device in devices))
        except InvalidDeviceNameError:  # perhaps of a type that has no device here
            return spelled(name, self._registry.known_types)

    def _known(self) -> list[str]:
        return [str(device.parsed_name.local) for device in self.list_devices()]


def _check_is_device(device: object) -> None:
    if not isinstance(device, Device):
        msg = f"{device!r} is no Device"
        raise TypeError(msg)
