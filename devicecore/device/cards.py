"""Cards that were lost: a fallen GPU takes every device on it along, for the whole process."""

from __future__ import annotations

import weakref
from typing import Protocol


class OnCard(Protocol):
    """A device on a card."""

    def retire(self, reason: str) -> None:
        """Refuse everything from now on, because of *reason*."""


_lost: dict[str, str] = {}
_devices: dict[str, weakref.WeakSet[OnCard]] = {}


def join(device: OnCard, physical_id: str) -> None:
    """Put *device* on a card, which may be lost already."""
    _devices.setdefault(physical_id, weakref.WeakSet()).add(device)
    if physical_id in _lost:
        device.retire(_lost[physical_id])


def lose(physical_id: str, reason: str) -> None:
    """Retire every device on the card, and every one that is still to come."""
    _lost[physical_id] = reason
    for device in list(_devices.get(physical_id, ())):
        device.retire(reason)
