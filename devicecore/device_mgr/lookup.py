"""From a name that is no exact alias to the devices that it means."""

from __future__ import annotations

from typing import TYPE_CHECKING

from devicecore.device_factory.refusals import refusals
from devicecore.errors import UnknownDeviceError
from devicecore.liveness.causes import causes
from devicecore.names import DEVICE_CLASSES, DeviceName

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from devicecore.device import Device
    from devicecore.device_factory import FactoryRegistry


def is_class(device_type: str | None, devices: Iterable[Device]) -> bool:
    """Return whether *device_type* means a family of devices, since no device is of that type."""
    return (
        device_type in DEVICE_CLASSES
        and device_type != "CPU"
        and all(device.device_type != device_type for device in devices)
    )


def matching(name: DeviceName, devices: Sequence[Device]) -> list[Device]:
    """Return those of *devices* that set every part of *name* to its value, types in any case."""
    folded = None if name.device_type is None else name.device_type.casefold()
    task = DeviceName(job=name.job, replica=name.replica, task=name.task, index=name.index)
    return [
        device
        for device in devices
        if (folded is None or device.device_type.casefold() == folded)
        and task.is_specified_by(device.parsed_name)
    ]


def of_class(
    name: DeviceName, devices: Iterable[Device], rank: Callable[[Device], tuple[object, ...]]
) -> list[Device]:
    """Return the devices of a class, one for each piece of hardware: the best one on it.

    Args:
        name: Its type is the class, its index counts pieces of hardware.
        devices: What there is.
        rank: Sorts the better device first.
    """
    task = DeviceName(job=name.job, replica=name.replica, task=name.task)
    members = [
        device
        for device in devices
        if device.device_class == name.device_type and task.is_specified_by(device.parsed_name)
    ]
    best: dict[object, Device] = {}
    for device in sorted(members, key=rank):
        best.setdefault(device.physical_id or device.name, device)
    found = list(best.values())
    if name.index is None:
        return found
    return found[name.index : name.index + 1]


def host_cpu(devices: Iterable[Device]) -> Device | None:
    """Return the first of *devices* that is called CPU:0, or None."""
    return next(
        (each for each in devices if each.device_type == "CPU" and each.parsed_name.index == 0),
        None,
    )


def why_missing(name: DeviceName, devices: Sequence[Device], registry: FactoryRegistry) -> str:
    """Return why none of *devices* is of the type of *name*; empty where that is not known."""
    if name.device_type is None or matching(DeviceName(device_type=name.device_type), devices):
        return ""
    if is_class(name.device_type, devices):
        reasons = causes(refusals(registry, name.device_type, deep=False))
        article = "an" if name.device_type == "NPU" else "a"  # as it is spoken
        return f"no device here is {article} {name.device_type}" + (
            f": {reasons}" if reasons else ""
        )
    try:
        candidates = registry.explain(name.device_type)
    except UnknownDeviceError as error:
        return error.why
    for candidate in candidates:
        state, reason = candidate.liveness.state, candidate.liveness.reason
        if state == "untried":
            how = f"devicecore.resolve({name.device_type.lower()!r}) tries it"
            return f"{name.device_type} was not tried yet, {reason}; {how}"
        if state != "live":
            return f"{name.device_type} is {state}: {reason}"
    return f"{name.device_type} is live, and this manager was not given it" if candidates else ""
