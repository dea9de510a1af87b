"""Page-locked memory that packed tensors are copied from, used again and again."""

from __future__ import annotations

import ctypes
import sys
import threading
from collections import deque
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from devicecore.fork import rearm_after_fork

if TYPE_CHECKING:
    from collections.abc import Iterator

CHUNK_BYTES = 1 << 22
# One is filled while others are on their way.
_BUFFERS = 3


class PinnedRing:
    """Buffers of `CHUNK_BYTES`, each lent to one copy at a time.

    Locking memory takes about a millisecond, so it is done once for each buffer. There are more
    than a few only where as many threads copy at once.
    """

    def __init__(self) -> None:
        self._made: list[Any] = []
        self._idle: deque[tuple[Any, Any]] = deque()
        self._lock = threading.Lock()
        rearm_after_fork(self)

    @property
    def buffers(self) -> int:
        """How many buffers there are, lent ones too."""
        return len(self._made)

    @contextmanager
    def lend(self, device: Any) -> Iterator[Any]:
        """Lend a buffer; it is used again when what the block queues on *device* is done."""
        buffer = self._take()
        try:
            yield buffer
        finally:
            torch = sys.modules["torch"]
            done = getattr(torch, device.type).current_stream(device).record_event()
            with self._lock:
                self._idle.append((buffer, done))

    def _take(self) -> Any:
        with self._lock:
            oldest = self._idle.popleft() if self._idle else None
            is_enough = self.buffers >= _BUFFERS
        if oldest is not None and (is_enough or oldest[1].query()):
            oldest[1].synchronize()
            return oldest[0]
        if oldest is not None:
            with self._lock:
                self._idle.appendleft(oldest)
        made = _new_buffer(pinned=True)
        with self._lock:
            self._made.append(made)
        return made

    def after_fork(self) -> None:
        """Forget the buffers in a forked child: the driver does not know them there."""
        self._lock = threading.Lock()
        abandon((self._idle, self._made))
        self._idle, self._made = deque(), []


def abandon(value: Any) -> None:
    """Keep *value* for good, in a forked child: to free memory or an event calls the driver.

    That ends the child at once, as the driver does not work there.
    """
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(value))


_ring = PinnedRing()


@contextmanager
def staging(device: Any) -> Iterator[Any]:
    """Lend a tensor of `CHUNK_BYTES` bytes on the host, to copy from to *device*."""
    if device.type == "cuda":
        with _ring.lend(device) as buffer:
            yield buffer
    else:
        yield _new_buffer(pinned=False)


def _new_buffer(*, pinned: bool) -> Any:
    torch = sys.modules["torch"]
    with torch.inference_mode(mode=False):  # or it could be written in that mode only
        return torch.empty(CHUNK_BYTES, dtype=torch.uint8, device="cpu", pin_memory=pinned)
