"""The thread that learns when a GPU has finished what was queued on it."""

from __future__ import annotations

import math
import threading
import time
from contextlib import suppress
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, Protocol

from attrs import define

from devicecore.locks import SLICE_S

if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import Future


class Mark(Protocol):
    """A place in a stream, such as an event of torch."""

    def synchronize(self) -> None:
        """Wait until the GPU is there."""


@define(eq=False)
class Queued:
    """A call whose work the GPU has not finished yet.

    Attributes:
        future: What its caller waits for.
        result: What the call returned.
        mark: The place in the stream after its work; None once it was reached.
        late: Turns an error that the GPU reports only now into the one that the caller gets.
    """

    future: Future[Any]
    result: Any
    mark: Mark | None
    late: Callable[[Exception], Exception]

    def settle(self) -> None:
        """Wait for the GPU, then complete the future; its callbacks run here.

        The mark goes first: whoever waits may end the program at once, and a driver's event that
        is freed in a thread while Python ends aborts the process.
        """
        failed = None
        mark, self.mark = self.mark, None
        try:
            if mark is not None:
                mark.synchronize()
        except Exception as error:  # noqa: BLE001 - a driver may raise anything
            failed = self.late(error)
        del mark
        if failed is None:
            self.future.set_result(self.result)
        else:
            self.future.set_exception(failed)


class Completion:
    """One thread that settles queued calls, in the order of their submission.

    It holds the device only through the calls that are queued.

    Args:
        name: The thread's name.
        prepare: Run first in the thread, such as choosing the GPU that it speaks to.
    """

    def __init__(self, name: str, prepare: Callable[[], object]) -> None:
        self._queue: SimpleQueue[Queued | None] = SimpleQueue()
        self._lock = threading.Lock()
        self._closed = False
        self._thread = threading.Thread(
            target=_serve, args=(self._queue, prepare), name=name, daemon=True
        )
        self._thread.start()

    def add(self, queued: Queued) -> None:
        """Have *queued* settled; at once if nobody else would, or in a callback of this thread.

        A callback that waited for what is queued behind it would wait for ever.
        """
        with self._lock:
            here = self._closed or threading.current_thread() is self._thread
            if not here:
                self._queue.put(queued)
        if here:
            queued.settle()

    def stop(self) -> None:
        """Let the thread end after what is queued, without waiting for it."""
        with self._lock:
            if not self._closed:
                self._closed = True
                self._queue.put(None)

    def close(self, timeout_s: float | None = None) -> None:
        """Let the thread finish what is queued, and wait for it, *timeout_s* at most."""
        self.stop()
        if threading.current_thread() is self._thread:
            return
        end = math.inf if timeout_s is None else time.monotonic() + timeout_s
        while self._thread.is_alive() and (left_s := end - time.monotonic()) > 0:
            self._thread.join(min(left_s, SLICE_S))


def _serve(queue: SimpleQueue[Queued | None], prepare: Callable[[], object]) -> None:
    prepare()
    while (queued := queue.get()) is not None:
        with suppress(BaseException):  # a callback may even try to exit; others still wait
            queued.settle()
        del queued  # or the result would live until the next one comes
