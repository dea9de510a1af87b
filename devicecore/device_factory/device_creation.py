"""From live factories to devices, with one broken factory costing only itself."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from attrs import evolve

from devicecore.device import Device
from devicecore.device_factory.device_options import DeviceOptions
from devicecore.device_factory.option_checks import checked, is_class, of_classes, why_left_out
from devicecore.device_factory.type_lookup import registered_type, unknown
from devicecore.errors import NotLiveError, UnknownDeviceError
from devicecore.kernels import Kernel
from devicecore.liveness import Liveness, seen_by
from devicecore.liveness.probe_result import broken, failure, pass_on_interrupt
from devicecore.names import FRAMEWORKS, spelled

if TYPE_CHECKING:
    from collections.abc import Iterable

    from devicecore.device_factory.registration import Registration
    from devicecore.device_factory.registry import FactoryRegistry
    from devicecore.names import DeviceName

_HOST = "CPU"


def add_devices(
    registry: FactoryRegistry, options: DeviceOptions, name_prefix: str
) -> list[Device]:
    """Make the devices of the first live factory of every type; see `FactoryRegistry`."""
    options = checked(options, registry.known_types)
    filters = [spelled(text, registry.known_types) for text in options.filters]
    wanted = [
        registration
        for registration in registry.factories()
        if not registration.only_named or _names(filters, registration.device_type)
    ]
    registry.probe([each for each in wanted if each.after_class is None], options.frameworks)
    devices: dict[str, list[Device]] = {}
    for registration in wanted:
        if registration.after_class is None and registration.device_type not in devices:
            made = _make(registry, registration, options, name_prefix)
            devices |= {registration.device_type: made} if made else {}
    _second_wave(registry, wanted, devices, options, name_prefix)
    host = devices.pop(_HOST, [])
    if not host:
        raise _why_none(registry, _HOST, options)
    passed = _only(filters, _all(devices))
    return [*host, *of_classes(options, passed, registry.known_types)]


def _second_wave(
    registry: FactoryRegistry,
    wanted: Iterable[Registration],
    devices: dict[str, list[Device]],
    options: DeviceOptions,
    name_prefix: str,
) -> None:
    """Let those that wait for a class of devices take their type over, once there is one."""
    classes = {device.device_class for device in _all(devices)}
    for registration in wanted:
        if registration.after_class not in classes:
            continue
        if made := _make(registry, registration, options, name_prefix):
            for replaced in devices.get(registration.device_type, ()):
                replaced.close()
            devices[registration.device_type] = made


def _only(filters: list[DeviceName], devices: list[Device]) -> list[Device]:
    """Return the devices that pass, without those on a GPU that this process has lost."""
    kept = []
    for device in devices:
        passes = not filters or any(_passes(device, name) for name in filters)
        if passes and not device.gone:
            kept.append(device)
        else:
            device.close()
    return kept


def _passes(device: Device, name: DeviceName) -> bool:
    if not is_class(name.device_type) or name.device_type == device.device_type:
        return device.parsed_name.matches(name)
    return device.device_class == name.device_type


def new_device(
    registry: FactoryRegistry, device_type: str, options: DeviceOptions, name_prefix: str
) -> Device:
    """Make one device of a type; see `FactoryRegistry`."""
    options = checked(options, registry.known_types)
    device_type = registered_type(registry, device_type)
    one = evolve(options, device_count={**options.device_count, device_type: 1})
    device, *spares = devices_of_type(registry, device_type, one, name_prefix)
    for spare in spares:
        spare.close()
    return device


def host_device(registry: FactoryRegistry, name_prefix: str) -> Device:
    """Make CPU:0 at once, from what is known without a probe if any factory of it can.

    Raises:
        NotLiveError: No factory of the CPU can.
    """
    one = DeviceOptions(device_count={_HOST: 1})
    first = [each for each in registry.factories(_HOST) if each.after_class is None]
    # Somebody's own factory may not know it without one.
    for registration, deep in [(each, deep) for deep in (False, True) for each in first]:
        liveness = registry.liveness_of(registration, deep=deep)
        if liveness.is_live:
            known = tuple(name for name, each in liveness.frameworks.items() if each.is_live)
            found = evolve(one, physical=liveness.devices, frameworks=known)
            if made := _create(registry, registration, found, name_prefix):
                return made[0]
    raise _why_none(registry, _HOST, one)


def devices_of_type(
    registry: FactoryRegistry, device_type: str, options: DeviceOptions, name_prefix: str
) -> list[Device]:
    """Make the devices of the first live factory of a type.

    Raises:
        UnknownDeviceError: Nobody registered the type.
        NotLiveError: No factory of the type is live, or none made a device.
    """
    options = checked(options, registry.known_types)
    device_type = registered_type(registry, device_type)
    for registration in registry.factories(device_type):
        if registration.after_class is None and (
            made := _make(registry, registration, options, name_prefix)
        ):
            return made
    raise _why_none(registry, device_type, options)


def _make(
    registry: FactoryRegistry, registration: Registration, options: DeviceOptions, prefix: str
) -> list[Device]:
    liveness, frameworks = _live_frameworks(registry, registration, options)
    if not liveness.is_live:
        return []
    found = evolve(options, physical=liveness.devices, frameworks=frameworks)
    return _create(registry, registration, found, prefix)


def _create(
    registry: FactoryRegistry, registration: Registration, options: DeviceOptions, prefix: str
) -> list[Device]:
    """Let a live factory create its devices; if it fails, it is not called live any more."""
    try:
        factory = registry.build(registration)
        made = list(factory.create_devices(options, prefix))
        _check(made, registration)
        kernels = tuple(factory.kernels())
        _check_kernels(kernels)
    except BaseException as error:  # noqa: BLE001 - a factory may even try to exit
        pass_on_interrupt(error)
        registry.downgrade(registration, failure(error))
        return []
    if not made and options.physical and not (options.visible or options.device_count):
        reason = "its probe says that it is live, and its create_devices made no device"
        registry.downgrade(registration, broken(reason))
    for device in made:
        device.kernels = (*device.kernels, *kernels)
        device.priority = registry.priority_of(registration)
        device.on_doubt = partial(registry.doubt, registration)
    return made


def _live_frameworks(
    registry: FactoryRegistry, registration: Registration, options: DeviceOptions
) -> tuple[Liveness, tuple[str, ...]]:
    """Return the liveness for what was asked, and the frameworks that are live."""
    if not options.frameworks:
        overall = registry.liveness_of(registration)
        answers = dict(overall.frameworks)
    else:
        answers = {name: registry.liveness_of(registration, name) for name in options.frameworks}
        live = [answer for answer in answers.values() if answer.is_live]
        overall = evolve(live[0], devices=seen_by(live)) if live else next(iter(answers.values()))
    if not overall.is_live and registration.device_type == _HOST:
        overall = registry.liveness_of(registration, deep=False)  # the host needs no framework
    return overall, tuple(
        name for name, answer in answers.items() if answer.is_live and name in FRAMEWORKS
    )


def _check(made: Iterable[object], registration: Registration) -> None:
    names: set[str] = set()
    for device in made:
        if not isinstance(device, Device):
            msg = f"create_devices returned {device!r}, which is no Device"
            raise TypeError(msg)
        if device.device_type != registration.device_type:
            msg = f"{device.name} is not of the type {registration.device_type}"
            raise ValueError(msg)
        if device.name in names:
            msg = f"it made {device.name} twice"
            raise ValueError(msg)
        names.add(device.name)


def _check_kernels(kernels: Iterable[object]) -> None:
    for kernel in kernels:
        if not isinstance(kernel, Kernel):
            msg = f"kernels() returned {kernel!r}, which is no Kernel"
            raise TypeError(msg)


def _why_none(
    registry: FactoryRegistry, device_type: str, options: DeviceOptions
) -> NotLiveError | UnknownDeviceError:
    registrations = [each for each in registry.factories(device_type) if not each.after_class]
    if not registrations:
        return unknown(registry, device_type)
    for registration in registrations:
        liveness = registry.liveness_of(registration)
        if not liveness.is_live:
            return NotLiveError(device_type, liveness.state, liveness.reason, liveness.fix)
    if reason := why_left_out(options, device_type):
        fix = "every manager has the CPU" if device_type == _HOST else "leave that option out"
        return NotLiveError(device_type, "excluded", reason, fix)
    return NotLiveError(device_type, "absent", "its factory made no device", "")


def _all(devices: dict[str, list[Device]]) -> list[Device]:
    return [device for group in devices.values() for device in group]


def _names(filters: Iterable[DeviceName], device_type: str) -> bool:
    return any(name.device_type == device_type for name in filters)
