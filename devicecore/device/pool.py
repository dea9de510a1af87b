"""A bounded pool of threads for calls that somebody waits for elsewhere."""

from __future__ import annotations

import threading
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import TYPE_CHECKING, Any

from devicecore.fork import rearm_after_fork

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

# Which pool's thread this is, and how many calls it runs inside each other. A call from such a
# thread runs at once: were it queued, all threads could wait for each other.
_inside = threading.local()
# Calls inside calls would exhaust the stack, so now and then one runs in a further thread. That may
# not be one of the bounded number: the call that it is inside of may wait for it.
_DEEPEST = 32
_MOST_FURTHER = 10_000
_SLICE_S = 0.2
# Which pools' calls wait right now until which pool is closed.
_closing: list[tuple[TaskPool, TaskPool]] = []
_closing_lock = threading.Lock()


class _Rearming:
    """Makes the table of what closes anew in a forked child: nothing closes there yet."""

    def after_fork(self) -> None:
        global _closing_lock  # noqa: PLW0603 - the child takes one of its own
        _closing_lock = threading.Lock()
        _closing.clear()


_REARMING = _Rearming()  # kept here: a subscription keeps nothing alive
rearm_after_fork(_REARMING)


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


def wait_until_done(futures: Collection[Future[Any]]) -> None:
    """Wait for all of *futures*, in slices so that a Ctrl-C ends it.

    Python does not hear one that comes just before a wait without an end, or that the system gives
    to another thread.
    """
    while wait(futures, _SLICE_S).not_done:
        pass


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
        self._further = ThreadPoolExecutor(_MOST_FURTHER, f"{name}-inner", initializer=self._enter)

    def _enter(self) -> None:
        _inside.pool = self
        _inside.depth = 0
        _inside.around = frozenset()

    def submit(self, call: Callable[[], Any], future: Future[Any] | None = None) -> Future[Any]:
        """Run *call* in a thread; in the caller's own if that belongs to a pool.

        Args:
            call: What to run.
            future: Where its result goes, with callbacks already; None for a new one.

        Raises:
            RuntimeError: The pool is closed.
        """
        future = Future() if future is None else future
        executor = self._executor
        if _current_pool() is not None and _inside.depth >= _DEEPEST:
            executor, call = self._further, _inside_of(_callers(), call)
        elif _current_pool() is not None:
            _inside.depth += 1
            try:
                run_into(future, call)
            finally:
                _inside.depth -= 1
            return future
        queued = executor.submit(run_into, future, call)
        queued.add_done_callback(lambda queued: _drop(future) if queued.cancelled() else None)
        return future

    def close(self, then: Callable[[], object] = lambda: None) -> None:
        """Cancel what waits, let what runs finish, wait for it, and call *then*.

        A call that this would wait for may itself wait for the caller: one of this pool, or one
        that closes the caller's pool. Then another thread waits.
        """
        for executor in (self._executor, self._further):
            executor.shutdown(wait=False, cancel_futures=True)

        def finish() -> None:
            for executor in (self._executor, self._further):
                executor.shutdown(wait=True)
            then()

        callers = _callers()
        with _closing_lock:
            waits = not any(_waits_for(self, caller) for caller in callers)
            edges = [(caller, self) for caller in callers] if waits else []
            _closing.extend(edges)
        try:
            if waits:
                finish()
            else:
                threading.Thread(target=finish, name="devicecore-close").start()
        finally:
            with _closing_lock:
                for edge in edges:
                    if edge in _closing:  # a fork in between has cleared it
                        _closing.remove(edge)


def _inside_of(callers: frozenset[TaskPool], call: Callable[[], Any]) -> Callable[[], Any]:
    """Return *call* as one that *callers* may wait for."""

    def inner() -> Any:
        _inside.around = callers
        return call()

    return inner


def _callers() -> frozenset[TaskPool]:
    """Return the pools whose calls this thread runs, or runs something for."""
    pool = _current_pool()
    around: frozenset[TaskPool] = getattr(_inside, "around", frozenset())
    return around if pool is None else around | {pool}


def _waits_for(pool: TaskPool, other: TaskPool) -> bool:
    """Return whether a call of *pool* waits until *other* is closed, directly or not."""
    seen, todo = set[TaskPool](), [pool]
    while todo:
        current = todo.pop()
        if current is other:
            return True
        seen.add(current)
        todo += [to for start, to in _closing if start is current and to not in seen]
    return False


def _current_pool() -> TaskPool | None:
    return getattr(_inside, "pool", None)
