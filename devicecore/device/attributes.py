"""What is known of a device before anything runs on it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from attrs import field, frozen

from devicecore.names import canonical_framework, canonical_type

if TYPE_CHECKING:
    from collections.abc import Iterable


@frozen
class DeviceLocality:
    """Where a device sits in the machine.

    Attributes:
        bus_id: The PCI bus id, such as ``"0000:3b:00.0"``, or an empty string.
        numa_node: The NUMA node, or None.
        links: Physical ids of the devices that it reaches directly.
    """

    bus_id: str = ""
    numa_node: int | None = None
    links: tuple[str, ...] = ()


def as_known(device_class: str, frameworks: Iterable[str]) -> tuple[str, frozenset[str]]:
    """Return a class and frameworks, or the one framework, as devicecore writes them."""
    given = [frameworks] if isinstance(frameworks, str) else frameworks
    return canonical_type(device_class), frozenset(map(canonical_framework, given))


def _incarnation() -> int:
    return int.from_bytes(os.urandom(8), "big") or 1


@frozen
class DeviceAttributes:
    """What is known of a device before anything runs on it.

    Attributes:
        name: The device's full name.
        device_type: Its type.
        memory_limit: Memory that may be used on it, in bytes; 0 where unknown.
        locality: Where it sits.
        incarnation: A random number that tells this device from a later one of the same name.
        description: One line for a person, such as ``"NVIDIA H200, sm_90"``.
    """

    name: str
    device_type: str
    memory_limit: int = 0
    locality: DeviceLocality = DeviceLocality()
    incarnation: int = field(factory=_incarnation)
    description: str = ""
