"""What `DeviceOptions` say of types and classes, held against what there is."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING, TypeVar

from attrs import evolve

from devicecore.errors import UnknownDeviceError
from devicecore.names import DEVICE_CLASSES, DEVICE_TYPES

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from devicecore.device import Device
    from devicecore.device_factory.factory import DeviceOptions

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
    names = {*known_types, *DEVICE_CLASSES, *DEVICE_TYPES}
    spelled = {name.casefold(): name for name in names}
    unknown = [
        f"{field} has {key!r}{_near(key, spelled)}"
        for field in ("device_count", "visible")
        for key in getattr(options, field)
        if key.casefold() not in spelled
    ]
    if unknown:
        what = next(
            key
            for key in (*options.device_count, *options.visible)
            if key.casefold() not in spelled
        )
        raise UnknownDeviceError(what, sorted(names), "; ".join(unknown))
    return evolve(
        options,
        device_count=_spelled(options.device_count, spelled),
        visible=_spelled(options.visible, spelled),
    )


def of_classes(
    options: DeviceOptions, devices: Iterable[Device], known_types: Collection[str]
) -> list[Device]:
    """Return those of *devices*, best first, on cards that the classes in *options* let through.

    The others are closed.
    """
    made = list(devices)
    passed = {_card(device) for device in made}
    for name in DEVICE_CLASSES - {_HOST, *known_types}:
        cards = list(dict.fromkeys(_card(each) for each in made if each.device_class == name))
        visible = options.visible.get(name, range(len(cards)))
        shown = [card for index, card in enumerate(cards) if index in visible]
        passed -= {*cards} - {*shown[: options.device_count.get(name)]}
    for device in made:
        if _card(device) not in passed:
            device.close()
    return [device for device in made if _card(device) in passed]


def _card(device: Device) -> str:
    return device.physical_id or device.name


def _spelled(values: Mapping[str, _Value], spelled: Mapping[str, str]) -> dict[str, _Value]:
    return {spelled[key.casefold()]: value for key, value in values.items()}


def _near(key: str, spelled: Mapping[str, str]) -> str:
    near = get_close_matches(key.casefold(), spelled, n=1)
    return f", which may mean {spelled[near[0]]!r}" if near else ""
