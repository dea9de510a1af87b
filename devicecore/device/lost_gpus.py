"""Cards that were lost: a fallen GPU takes every device on it along, for the whole process."""

from __future__ import annotations

import threading
import weakref
from typing import Protocol

from devicecore.fork import rearm_after_fork


class OnCard(Protocol):
    """A device on a card."""

    def retire(self, reason: str) -> None:
        """Refuse everything from now on, because of *reason*."""


class Card:
    """The devices on one card; it is there as long as one of them is."""

    def __init__(self) -> None:
        self.devices: weakref.WeakSet[OnCard] = weakref.WeakSet()


class Cards:
    """Which devices share a card, and which cards are lost."""

    def __init__(self) -> None:
        self._cards: weakref.WeakValueDictionary[str, Card] = weakref.WeakValueDictionary()
        self._lost: dict[str, str] = {}
        self._lock = threading.Lock()
        rearm_after_fork(self)

    def join(self, device: OnCard, physical_id: str) -> Card:
        """Put *device* on a card, which may be lost already; the device has to keep the card."""
        with self._lock:
            card = self._cards.setdefault(physical_id, Card())
            card.devices.add(device)
            reason = self._lost.get(physical_id)
        if reason is not None:
            device.retire(reason)
        return card

    def lose(self, physical_id: str, reason: str) -> None:
        """Retire every device on the card, and every one that is still to come."""
        with self._lock:
            self._lost[physical_id] = reason
            card = self._cards.get(physical_id)
            devices = list(card.devices) if card else []
        for device in devices:
            device.retire(reason)

    def after_fork(self) -> None:
        """Take a lock of its own in a forked child."""
        self._lock = threading.Lock()


_cards = Cards()


def cards_of_process() -> Cards:
    """Return the cards of this process."""
    return _cards
