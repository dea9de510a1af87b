"""A bounded pool of threads for calls that somebody waits for elsewhere."""

from __future__ import annotations

import threading
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

# A call from a pool's thread runs at once: were it queued, all threads could wait for each other.
_inside = threading.local()


def _mark_thread() -> None:
    _inside.pool = True


def in_pool_thread() -> bool:
    """Return whether the caller runs in a thread of a `TaskPool`."""
    return getattr(_inside, "pool", False)


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


def failed(error: Exception) -> Future[Any]:
    """Return a future that has failed already."""
    future: Future[Any] = Future()
    future.set_exception(error)
    return future


def _drop(future: Future[Any]) -> None:
    """Cancel a call that will never start, and tell whoever waits: an executor forgets to."""
    if future.cancel():
        future.set_running_or_notify_cancel()


class TaskPool:
    """Threads that start when needed, and a queue that makes callers wait when it is full.

    Args:
        threads: How many calls may run at once.
        name: Prefix of the threads' names.
        backlog: How many calls may wait or run before `submit` blocks.
    """

    def __init__(self, threads: int, name: str, backlog: int = 1024) -> None:
        self._executor = ThreadPoolExecutor(threads, name, initializer=_mark_thread)
        self._room = threading.BoundedSemaphore(backlog)

    def submit(self, call: Callable[[], Any]) -> Future[Any]:
        """Run *call* in a thread; in the caller's own if that belongs to a pool.

        Raises:
            RuntimeError: The pool is closed.
        """
        future: Future[Any] = Future()
        if in_pool_thread():
            run_into(future, call)
            return future
        self._room.acquire()
        future.add_done_callback(lambda _: self._room.release())
        try:
            queued = self._executor.submit(run_into, future, call)
        except BaseException:
            future.cancel()
            raise
        queued.add_done_callback(lambda queued: _drop(future) if queued.cancelled() else None)
        return future

    def close(self) -> None:
        """Cancel what waits, let what runs finish, and wait for it."""
        self._executor.shutdown(wait=not in_pool_thread(), cancel_futures=True)
