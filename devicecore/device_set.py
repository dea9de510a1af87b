"""`DeviceSet`: devices in the order in which placement considers them, as in TensorFlow."""

from __future__ import annotations

from typing import TYPE_CHECKING

from devicecore.device_factory import default_registry
from devicecore.errors import DeviceConflictError
from devicecore.names import spelled

if TYPE_CHECKING:
    from collections.abc import Iterable

    from devicecore.device import Device
    from devicecore.device_factory import FactoryRegistry
    from devicecore.names import DeviceName

_MOST_PATTERNS = 4096


class DeviceSet:
    """Devices to choose from; it does not own them, and it is filled before threads share it.

    Args:
        devices: The first devices.
        registry: Tells the types' priorities; None for the default registry.
    """

    def __init__(
        self, devices: Iterable[Device] = (), *, registry: FactoryRegistry | None = None
    ) -> None:
        self._registry = registry or default_registry()
        self._devices: list[Device] = []
        self._types: dict[str, None] = {}
        self._by_name: dict[str, Device] = {}
        self._matches: dict[DeviceName, tuple[Device, ...]] = {}
        self._client: Device | None = None
        for device in devices:
            self.add_device(device)

    def add_device(self, device: Device) -> None:
        """Add *device*; of two with one name, `find_device_by_name` finds the first."""
        self._devices.append(device)
        self._types[device.device_type] = None
        self._matches.clear()
        if device.parsed_name.is_complete:
            for alias in device.parsed_name.aliases[:2]:
                self._by_name.setdefault(alias, device)

    @property
    def devices(self) -> tuple[Device, ...]:
        """All devices, in the order in which they were added."""
        return tuple(self._devices)

    def find_device_by_name(self, name: str | DeviceName) -> Device | None:
        """Return the device with that full name, canonical or legacy, or None."""
        return self._by_name.get(str(name))

    def find_matching_devices(self, pattern: object) -> tuple[Device, ...]:
        """Return the devices that set every part of *pattern* to its value, as they were added.

        Args:
            pattern: A name whose unset parts mean "any", or the object of a framework.

        Raises:
            InvalidDeviceNameError: *pattern* is not a device name.
        """
        name = spelled(pattern, self._types)
        found = self._matches.get(name)
        if found is None:
            found = tuple(
                device for device in self._devices if name.is_specified_by(device.parsed_name)
            )
            if len(self._matches) < _MOST_PATTERNS:
                self._matches[name] = found
        return found

    @property
    def client_device(self) -> Device | None:
        """The device of the program itself, once it was set."""
        return self._client

    @client_device.setter
    def client_device(self, device: Device) -> None:
        if device not in self._devices:
            raise DeviceConflictError(device.name, "a client device must be in the set")
        if self._client is not None:
            raise DeviceConflictError(device.name, f"{self._client.name} is the client device")
        self._client = device

    @property
    def prioritized_devices(self) -> tuple[tuple[Device, int], ...]:
        """Each device with its priority, sorted by that, by type, local ones first, by name."""
        ranked = [(device, self._priority(device)) for device in self._devices]
        ranked.sort(
            key=lambda entry: (
                -entry[1],
                entry[0].device_type,
                not entry[0].is_local,
                entry[0].parsed_name,
            )
        )
        return tuple(ranked)

    @property
    def prioritized_device_types(self) -> tuple[tuple[str, int], ...]:
        """Each type with its priority, sorted by that and by name."""
        types = {device.device_type: self._priority(device) for device in self._devices}
        return tuple(sorted(types.items(), key=lambda entry: (-entry[1], entry[0])))

    def _priority(self, device: Device) -> int:
        return self._registry.device_priority(device.device_type)

    def __len__(self) -> int:
        return len(self._devices)

    def __repr__(self) -> str:
        return f"<DeviceSet of {len(self)}>"
