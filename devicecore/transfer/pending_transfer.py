"""`PendingTransfer`: what has been moved, perhaps not all of it yet."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from devicecore.transfer.target import QUEUEING

if TYPE_CHECKING:
    from collections.abc import Iterable


class PendingTransfer:
    """A transfer whose copies may still be on their way.

    Until `wait` has returned, what was given must not be changed, and the result must not be read
    on the host.
    """

    def __init__(self, data: Any, source: Any, devices: Iterable[Any] = ()) -> None:
        self._data = data
        self._source = source  # kept until the copies from it are done
        self._events = [_event(device) for device in devices]

    @property
    def done(self) -> bool:
        """Whether all copies are done."""
        return all(event.query() for event in self._events)

    def wait(self) -> Any:
        """Wait until all copies are done, and return the moved data."""
        for event in self._events:
            event.synchronize()
        self._source = None
        return self._data


def pending(data: Any, source: Any, devices: Iterable[Any]) -> PendingTransfer:
    """Return the handle of copies that were just queued on *devices*, of type ``torch.device``."""
    return PendingTransfer(data, source, {each for each in devices if each.type in QUEUEING})


def _event(device: Any) -> Any:
    """Return an event after everything that is queued on the current stream of *device*."""
    return getattr(sys.modules["torch"], device.type).current_stream(device).record_event()
