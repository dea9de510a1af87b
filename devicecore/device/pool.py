"""A bounded pool of threads for calls that somebody waits for elsewhere.

What runs may wait, by a thread of its own or otherwise, for what is queued behind it, or until the
pool is closed that it runs in. Nothing tells whom a thread waits for, but whether it computes can
be measured. So when all calls of a pool only wait, one more thread takes one more of the queue, and
`TaskPool.close` leaves the rest to another thread.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
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
# How long nothing may compute until one more call starts; twice as long before each further one.
_PATIENCE_S = 3.0
# How long nothing may compute until `close` does not wait any more.
_PATIENCE_OF_CLOSE_S = 5.0
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
        threads: How many calls may run at once, unless all of them only wait.
        name: Prefix of the threads' names.
    """

    def __init__(self, threads: int, name: str) -> None:
        self._name = name
        self._threads = threads
        self._executor = ThreadPoolExecutor(threads, name, initializer=self._enter)
        self._further = ThreadPoolExecutor(_MOST_FURTHER, f"{name}-inner", initializer=self._enter)
        self._queue: deque[tuple[Future[Any], Callable[[], Any]]] = deque()
        self._running = Activity()
        self._closed = threading.Event()
        self._watched = threading.Lock()

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
        if _current_pool() is None:
            self._put(future, call)
        elif _inside.depth >= _DEEPEST:
            call = _inside_of(_callers(), call)
            queued = self._further.submit(self._run, future, call)
            queued.add_done_callback(lambda queued: _drop(future) if queued.cancelled() else None)
        else:
            _inside.depth += 1
            try:
                run_into(future, call)
            finally:
                _inside.depth -= 1
        return future

    def _put(self, future: Future[Any], call: Callable[[], Any]) -> None:
        queued = (future, call)
        self._queue.append(queued)
        try:
            self._executor.submit(self._run_next)
        except RuntimeError:
            if self._take(queued):
                raise
            return  # `close` has come in between, and told whoever waits
        if len(self._queue) + len(self._running) > self._threads and self._watched.acquire(False):
            try:
                self._start(self._watch)
            except RuntimeError:  # the program ends
                self._watched.release()

    def _take(self, queued: tuple[Future[Any], Callable[[], Any]]) -> bool:
        try:
            self._queue.remove(queued)
        except ValueError:
            return False
        return True

    def _run_next(self) -> None:
        with self._running:
            try:
                future, call = self._queue.popleft()
            except IndexError:  # one more thread has taken it
                return
            run_into(future, call)

    def _run(self, future: Future[Any], call: Callable[[], Any]) -> None:
        with self._running:
            run_into(future, call)

    # --- when all that runs only waits --------------------------------------------------------

    def _watch(self) -> None:
        """Start one more thread whenever what runs only waits, until nothing is queued."""
        while True:
            patience_s = _PATIENCE_S
            while self._queue:
                before = self._running.measure()
                if self._closed.wait(patience_s):
                    return
                if self._queue and self._running.only_waits_since(before):
                    self._start(self._run_one_more)
                    patience_s *= 2
                else:
                    patience_s = _PATIENCE_S
            self._watched.release()
            # What was queued before that could not start a watch of its own.
            if not self._queue or not self._watched.acquire(False):
                return

    def _start(self, target: Callable[[], object]) -> None:
        threading.Thread(target=target, name=f"{self._name}-more", daemon=True).start()

    def _run_one_more(self) -> None:
        self._enter()
        self._run_next()

    def close(self, then: Callable[[], object] = lambda: None) -> None:
        """Cancel what waits, let what runs finish, wait for it, and call *then*.

        A call that this would wait for may itself wait for the caller: one of this pool, or one
        that closes the caller's pool, or one that has only waited for seconds. Then another thread
        waits.
        """
        self._closed.set()
        for executor in (self._executor, self._further):
            executor.shutdown(wait=False, cancel_futures=True)
        while self._queue:
            with suppress(IndexError):  # a thread has taken it
                _drop(self._queue.popleft()[0])
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
            if time.monotonic() - before[1] < _PATIENCE_OF_CLOSE_S:
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
