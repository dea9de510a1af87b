"""From live factories to devices, with one broken factory costing only itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attrs import evolve

from devicecore.device import Device
from devicecore.device_factory.factory import handed_to_factory
from devicecore.errors import NotLiveError, UnknownDeviceError
from devicecore.ledger import default_ledger
from devicecore.names import DeviceName

if TYPE_CHECKING:
    from collections.abc import Iterable

    from devicecore.device_factory.factory import DeviceOptions
    from devicecore.device_factory.registration import Registration
    from devicecore.device_factory.registry import FactoryRegistry
    from devicecore.liveness import Liveness

_HOST = "CPU"
_FRAMEWORKS = ("torch", "onnx")


def add_devices(
    registry: FactoryRegistry, options: DeviceOptions, name_prefix: str
) -> list[Device]:
    """Make the devices of the first live factory of every type; see `FactoryRegistry`."""
    filters = [DeviceName.parse(text) for text in options.filters]
    wanted = [
        registration
        for registration in registry.factories()
        if not registration.only_named or _names(filters, registration.device_type)
    ]
    # Everything is probed at once; what follows then finds the answers.
    registry.explain(deep=True)
    devices: dict[str, list[Device]] = {}
    for registration in wanted:
        if registration.after_class is None and registration.device_type not in devices:
            made = _make(registry, registration, options, name_prefix)
            if made:
                devices[registration.device_type] = made
    for registration in wanted:
        if registration.after_class in {each.device_class for each in _all(devices)}:
            made = _make(registry, registration, options, name_prefix)
            for replaced in devices.get(registration.device_type, ()) if made else ():
                replaced.close()
            devices[registration.device_type] = made or devices[registration.device_type]
    host = devices.pop(_HOST, [])
    if not host:
        raise _why_none(registry, _HOST)
    kept = [device for device in _all(devices) if _passes(device, filters)]
    for device in _all(devices):
        if device not in kept:
            device.close()
    return [*host, *kept]


def new_device(
    registry: FactoryRegistry, device_type: str, options: DeviceOptions, name_prefix: str
) -> Device:
    """Make one device of a type; see `FactoryRegistry`."""
    one = evolve(options, device_count={**options.device_count, device_type: 1})
    registrations = registry.factories(device_type)
    if not registrations:
        raise UnknownDeviceError(device_type, registry.device_types)
    for registration in registrations:
        for spare in (made := _make(registry, registration, one, name_prefix))[1:]:
            spare.close()
        if made:
            return made[0]
    raise _why_none(registry, device_type)


def _make(
    registry: FactoryRegistry, registration: Registration, options: DeviceOptions, prefix: str
) -> list[Device]:
    liveness, frameworks = _live_frameworks(registry, registration, options)
    if not liveness.is_live:
        return []
    try:
        factory = registry.build(registration)
        made = list(
            factory.create_devices(handed_to_factory(options, liveness, frameworks), prefix)
        )
        _check(made, registration)
        kernels = tuple(factory.kernels())
    except Exception as error:  # noqa: BLE001 - a factory may raise anything
        registry.downgrade(registration, error)
        default_ledger().record(
            "create devices",
            registration.device_type,
            "the next live factory",
            f"{registration.origin}: {type(error).__name__}: {error}",
        )
        return []
    for device in made:
        device.kernels = (*device.kernels, *kernels)
    return made


def _live_frameworks(
    registry: FactoryRegistry, registration: Registration, options: DeviceOptions
) -> tuple[Liveness, tuple[str, ...]]:
    """Return the overall liveness, and which of the frameworks asked for are live."""
    overall = registry.liveness_of(registration)
    asked = options.frameworks or tuple(overall.frameworks) or _FRAMEWORKS
    live = tuple(name for name in asked if overall.frameworks and overall.of(name).is_live)
    return overall, live


def _check(made: Iterable[object], registration: Registration) -> None:
    for device in made:
        if not isinstance(device, Device):
            msg = f"create_devices returned {device!r}, which is no Device"
            raise TypeError(msg)
        if device.device_type != registration.device_type:
            msg = f"{device.name} is not of the type {registration.device_type}"
            raise ValueError(msg)


def _why_none(registry: FactoryRegistry, device_type: str) -> NotLiveError:
    for registration in registry.factories(device_type):
        liveness = registry.liveness_of(registration)
        if not liveness.is_live:
            return NotLiveError(device_type, liveness.state, liveness.reason, liveness.fix)
    return NotLiveError(device_type, "absent", "its factory made no device", "")


def _all(devices: dict[str, list[Device]]) -> list[Device]:
    return [device for group in devices.values() for device in group]


def _names(filters: Iterable[DeviceName], device_type: str) -> bool:
    return any(name.device_type == device_type for name in filters)


def _passes(device: Device, filters: list[DeviceName]) -> bool:
    return not filters or any(device.parsed_name.matches(name) for name in filters)
