"""`Activity`: whether any of the threads that run something computes, or all of them only wait."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import TracebackType

# A thread that waits in slices, to hear a Ctrl-C, computes a little too.
_LEAST_SHARE = 0.05


class Activity:
    """What some threads do right now, of whom each enters this while it runs something."""

    def __init__(self) -> None:
        self._threads: list[int] = []
        self._ended = 0
        self._changed = threading.Condition()

    def __enter__(self) -> None:
        """Count the calling thread."""
        with self._changed:
            self._threads.append(threading.get_ident())

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Count it no more."""
        with self._changed:
            self._threads.remove(threading.get_ident())
            self._ended += 1
            self._changed.notify_all()

    def wait_until_over(self, timeout_s: float) -> bool:
        """Wait until nothing runs, at most so long, and return whether that is so."""
        with self._changed:
            return self._changed.wait_for(lambda: not self._threads, timeout_s)

    def measure(self) -> tuple[int, float, float]:
        """Return what `only_waits_since` needs: how much has ended, the time, and the CPU's."""
        with self._changed:  # so that none of the threads is over
            return self._ended, time.monotonic(), _cpu_s(self._threads)

    def only_waits_since(self, before: tuple[int, float, float]) -> bool:
        """Return whether nothing has ended since *before*, and nothing that runs has computed."""
        ended, now_s, cpu_s = self.measure()
        return ended == before[0] and cpu_s - before[2] < _LEAST_SHARE * (now_s - before[1])


def _cpu_s(threads: list[int]) -> float:
    """Return how long *threads* have computed; the whole process, where nobody knows of threads."""
    if not hasattr(time, "pthread_getcpuclockid"):
        return time.process_time()
    clocks = [time.pthread_getcpuclockid(thread) for thread in set(threads)]
    return sum(time.clock_gettime(clock) for clock in clocks)
