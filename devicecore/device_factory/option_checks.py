"""What `DeviceOptions` say of types and classes, held against what there is."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from attrs import evolve

from devicecore.errors import InvalidDeviceNameError, UnknownDeviceError
from devicecore.names import DEVICE_CLASSES, DEVICE_TYPES, near_types, type_named, why_unknown

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from devicecore.device import Device
    from devicecore.device_factory.device_options import DeviceOptions

_HOST = "CPU"
_Value = TypeVar("_Value")


def is_class(device_type: str | None) -> bool:
    """Return whether *device_type* is the name of a class of devices other than the host's."""
    return device_type in DEVICE_CLASSES and device_type != _HOST


def checked(options: DeviceOptions, known_types: Collection[str]) -> DeviceOptions:
    """Return *options* with all types and classes written as they are registered.

    Raises:
        UnknownDeviceError: There is no such type or class; names all that are unknown.
    """
    names = sorted({*known_types, *DEVICE_CLASSES, *DEVICE_TYPES})
    wrong = {
        key: f"{field} has {key!r}{why}"
        for field in ("device_count", "visible")
        for key in getattr(options, field)
        if (why := _why_no_type(key, names))
    }
    if wrong:
        raise UnknownDeviceError(next(iter(wrong)), names, "; ".join(wrong.values()))
    return evolve(
        options,
        device_count=_by_registered_name(options.device_count, names),
        visible=_by_registered_name(options.visible, names),
    )


def of_classes(
    options: DeviceOptions, devices: Iterable[Device], known_types: Collection[str]
) -> list[Device]:
    """Return those of *devices*, best first, on GPUs that the classes in *options* let through.

    The others are closed.
    """
    made = list(devices)
    passed = {_gpu(device) for device in made}
    for name in DEVICE_CLASSES - {_HOST, *known_types}:
        gpus = list(dict.fromkeys(_gpu(each) for each in made if each.device_class == name))
        visible = options.visible.get(name, range(len(gpus)))
        shown = [gpu for index, gpu in enumerate(gpus) if index in visible]
        passed -= {*gpus} - {*shown[: options.device_count.get(name)]}
    for device in made:
        if _gpu(device) not in passed:
            device.close()
    return [device for device in made if _gpu(device) in passed]


def why_left_out(options: DeviceOptions, device_type: str) -> str:
    """Return which of *options* may leave no device of a type; empty if none does."""
    if options.device_count.get(device_type) == 0:
        return f"device_count={{{device_type!r}: 0}} leaves none"
    if device_type != _HOST and device_type in options.visible:
        shown = tuple(options.visible[device_type])
        return f"visible={{{device_type!r}: {shown}}} leaves none of what is here"
    return ""


def _gpu(device: Device) -> str:
    return device.physical_id or device.name


def _by_registered_name(values: Mapping[str, _Value], names: Collection[str]) -> dict[str, _Value]:
    return {type_named(key, names): value for key, value in values.items()}


def _why_no_type(key: str, names: Collection[str]) -> str:
    """Return what there is to say of *key*, empty where it is a type or a class."""
    try:
        found = type_named(key, names)
    except InvalidDeviceNameError:
        word, _, index = key.partition(":")
        if index.isdecimal() and not _why_no_type(word, names):
            kind = type_named(word, names)
            return f", one device of {kind!r}: visible={{{kind!r}: ({int(index)},)}} shows it alone"
        found = ""
    if found in names:
        return ""
    if reason := why_unknown(key):
        return f": {reason}"
    near = near_types(key, names)
    return f", which may mean {near[0]!r}" if near else ", which is no type here"
