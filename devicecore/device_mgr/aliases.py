"""All texts that look a device up, with an heir for each that several devices share."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from devicecore.errors import DeviceConflictError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from devicecore.device import Device


class Aliases:
    """Which device answers to which text.

    Full names belong to one device. A local name, such as ``GPU:0``, is shared by the devices of
    all tasks: the last one added answers to it, and when that goes the one before does. The
    manager's lock guards changes; `by_text` may be read without.
    """

    def __init__(self) -> None:
        self.by_text: dict[str, Device] = {}
        # Only texts that more than one device wants, in the order in which they came.
        self._shared: dict[str, list[Device]] = {}
        self._folded: dict[str, str] = {}
        self._counts: Counter[str] = Counter()  # devices by type
        self._others: dict[str, int] = {}  # counts of families, and of types in another case

    def count(self, type_or_class: str, count_otherwise: Callable[[], int]) -> int:
        """Return how many devices are of a type; of a family, what *count_otherwise* counts."""
        given: object = type_or_class
        if not isinstance(given, str):
            return count_otherwise()  # which says that it is none
        if known := self._counts.get(type_or_class):
            return known
        others = self._others  # a change meanwhile puts another one in its place
        if type_or_class not in others:
            others[type_or_class] = count_otherwise()
        return others[type_or_class]

    def check(self, devices: Sequence[Device]) -> None:
        """Look whether all *devices* can be added.

        Raises:
            DeviceConflictError: A name is taken, or differs from one that is only by case.
        """
        new: dict[str, str] = {}
        for device in devices:
            folded = device.name.casefold()
            known = self._folded.get(folded) or new.get(folded)
            if known == device.name or device.name in self.by_text:
                raise DeviceConflictError(device.name, "there is a device of that name")
            if known is not None:
                raise DeviceConflictError(device.name, f"it differs from {known} only by case")
            new[folded] = device.name

    def add(self, device: Device) -> None:
        """Let *device*, which was checked, answer to its aliases."""
        self._folded[device.name.casefold()] = device.name
        self._counts[device.device_type] += 1
        self._others = {}
        for alias in device.parsed_name.aliases:
            known = self.by_text.get(alias)
            if known is None:
                self.by_text[alias] = device
                continue
            self._shared.setdefault(alias, [known]).append(device)
            # A device never loses its own name to another one's short form.
            if known.name != alias:
                self.by_text[alias] = device

    def remove(self, device: Device) -> None:
        """Let *device* answer to nothing; who shares an alias with it takes over."""
        del self._folded[device.name.casefold()]
        self._counts[device.device_type] -= 1
        self._others = {}
        for alias in device.parsed_name.aliases:
            owners = self._shared.get(alias)
            if owners is None:
                del self.by_text[alias]
                continue
            owners.remove(device)
            named = [owner for owner in owners if owner.name == alias]
            self.by_text[alias] = (named or owners)[-1]
            if len(owners) == 1:
                del self._shared[alias]
