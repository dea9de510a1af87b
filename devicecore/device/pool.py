"""A bounded pool of threads for calls that somebody waits for elsewhere."""

from __future__ import annotations

import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

from devicecore.device.stalls import Activity
from devicecore.fork import rearm_after_fork
from devicecore.locks import SLICE_S

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator

# Which pool's thread this is, and how many calls it runs inside each other. A call from such a
# thread runs at once: were it queued, all threads could wait for each other.
_inside = threading.local()
# Calls inside calls would exhaust the stack, so now and then one runs in a further thread. That may
# not be one of the bounded number: the call that it is inside of may wait for it.
_DEEPEST = 32
_MOST_FURTHER = 10_000
# What runs may wait, by a thread of its own, until the pool is closed that it runs in. Nothing
# tells whom a thread waits for: so long may all of them compute nothing until `close` gives up.
_PATIENCE_S = 30.0
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
    while wait(futures, SLICE_S).not_done:
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
        self._running = Activity()

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
        queued = executor.submit(self._run, future, call)
        queued.add_done_callback(lambda queued: _drop(future) if queued.cancelled() else None)
        return future

    def _run(self, future: Future[Any], call: Callable[[], Any]) -> None:
        with self._running:
            run_into(future, call)

    def close(self, then: Callable[[], object] = lambda: None) -> None:
        """Cancel what waits, let what runs finish, wait for it, and call *then*.

        A call that this would wait for may itself wait for the caller: one of this pool, or one
        that closes the caller's pool, or one that has only waited for long. Then another thread
        waits.
        """
        for executor in (self._executor, self._further):
            executor.shutdown(wait=False, cancel_futures=True)
        is_over = False
        try:
            with _closed_by(_callers(), self) as waits:
                is_over = waits and self._is_over()
        finally:
            if not is_over:  # also after a Ctrl-C
                finish = partial(self._finish, then)
                threading.Thread(target=finish, name="devicecore-close").start()
        if is_over:
            self._finish(then)

    def _finish(self, then: Callable[[], object]) -> None:
        while not self._running.wait_until_over(SLICE_S):
            pass
        for executor in (self._executor, self._further):
            executor.shutdown(wait=True)
        then()

    def _is_over(self) -> bool:
        """Wait until nothing runs; return False if what runs has only waited for long."""
        before = self._running.measure()
        while not self._running.wait_until_over(SLICE_S):
            if time.monotonic() - before[1] < _PATIENCE_S:
                continue
            if self._running.only_waits_since(before):
                return False
            before = self._running.measure()
        return True


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


@contextmanager
def _closed_by(callers: frozenset[TaskPool], pool: TaskPool) -> Iterator[bool]:
    """Say, during a block, that calls of *callers* wait until *pool* is closed.

    Gives whether they may: it does not wait for one of them.
    """
    with _closing_lock:
        waits = not any(_waits_for(pool, caller) for caller in callers)
        edges = [(caller, pool) for caller in callers] if waits else []
        _closing.extend(edges)
    try:
        yield waits
    finally:
        with _closing_lock:
            for edge in edges:
                if edge in _closing:  # a fork in between has cleared it
                    _closing.remove(edge)


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
