"""How long this thread was busy with what is done once, such as self-tests and compilation."""

from __future__ import annotations

import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


class _Spent(threading.local):
    seconds = 0.0
    depth = 0


_spent = _Spent()


def first_use_seconds() -> float:
    """Return how long this thread was inside of `first_use` so far."""
    return _spent.seconds


@contextmanager
def first_use() -> Iterator[None]:
    """Count the time of the block as one that no later call needs.

    Examples:
        >>> from devicecore.first_use import first_use, first_use_seconds
        >>> before = first_use_seconds()
        >>> with first_use(), first_use():  # what is inside of another one counts once
        ...     total = sum(range(1000))
        >>> first_use_seconds() > before
        True
    """
    start = time.perf_counter()
    _spent.depth += 1
    try:
        yield
    finally:
        _spent.depth -= 1
        if not _spent.depth:
            _spent.seconds += time.perf_counter() - start


class Stopwatch:
    """Tells the time of a call from that of what is done once inside of it."""

    def __init__(self) -> None:
        self._start = time.perf_counter()
        self._first_use = _spent.seconds

    def read(self) -> tuple[float, float]:
        """Return the seconds since it was made: those of the call, and those of first use."""
        once = _spent.seconds - self._first_use
        return max(0.0, time.perf_counter() - self._start - once), once
