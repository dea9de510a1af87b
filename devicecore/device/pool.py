"""A bounded pool of threads for calls that somebody waits for elsewhere."""

from __future__ import annotations

import threading
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

# Which pool's thread this is, and how many calls it runs inside each other. A call from such a
# thread runs at once: were it queued, all threads could wait for each other.
_inside = threading.local()
# A chain of calls, each started where the last one was done, is queued again now and then: it would
# exhaust the stack.
_DEEPEST = 32


def run_into(future: Future[Any], call: Callable[[], Any]) -> None:
    """Run *call* and put what comes of it into *future*, unless that was cancelled."""
    if not future.set_running_or_notify_cancel():
        return
    try:
        result = call()
    except BaseException as error:  # noqa: BLE001 - whoever waits for the future gets it
        future.set_exception(error)
    else:
        future.set_result(result)


def _drop(future: Future[Any]) -> None:
    """Cancel a call that will never start, and tell whoever waits: an executor forgets to."""
    if future.cancel():
        future.set_running_or_notify_cancel()


class TaskPool:
    """A bounded number of threads, which start when they are needed.

    Args:
        threads: How many calls may run at once.
        name: Prefix of the threads' names.
    """

    def __init__(self, threads: int, name: str) -> None:
        self._executor = ThreadPoolExecutor(threads, name, initializer=self._enter)

    def _enter(self) -> None:
        _inside.pool = self
        _inside.depth = 0

    def submit(self, call: Callable[[], Any], future: Future[Any] | None = None) -> Future[Any]:
        """Run *call* in a thread; in the caller's own if that belongs to a pool.

        Args:
            call: What to run.
            future: Where its result goes, with callbacks already; None for a new one.

        Raises:
            RuntimeError: The pool is closed.
        """
        future = Future() if future is None else future
        if _current_pool() is not None and _inside.depth < _DEEPEST:
            _inside.depth += 1
            try:
                run_into(future, call)
            finally:
                _inside.depth -= 1
            return future
        queued = self._executor.submit(run_into, future, call)
        queued.add_done_callback(lambda queued: _drop(future) if queued.cancelled() else None)
        return future

    def close(self) -> None:
        """Cancel what waits, let what runs finish, and wait for it, unless called from there."""
        self._executor.shutdown(wait=_current_pool() is not self, cancel_futures=True)


def _current_pool() -> TaskPool | None:
    return getattr(_inside, "pool", None)
