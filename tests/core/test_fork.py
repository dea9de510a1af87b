"""What is made anew in a forked child."""

from __future__ import annotations

import gc
import os
import threading
import weakref
from typing import TYPE_CHECKING, Any

import pytest

from devicecore.device import pool as pool_module
from devicecore.fork import rearm_after_fork

if TYPE_CHECKING:
    from collections.abc import Callable


class Subscriber:
    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.process = os.getpid()

    def after_fork(self) -> None:
        self.lock = threading.Lock()
        self.process = os.getpid()


def test_a_child_rearms_and_the_parent_does_not(in_fork: Callable[..., Any]) -> None:
    subscriber = Subscriber()
    rearm_after_fork(subscriber)
    with subscriber.lock:
        child, free = in_fork(lambda: (subscriber.process, subscriber.lock.acquire(blocking=False)))
    assert child != os.getpid()
    assert free
    assert subscriber.process == os.getpid()


def test_a_grandchild_rearms_too(in_fork: Callable[..., Any]) -> None:
    subscriber = Subscriber()
    rearm_after_fork(subscriber)

    def child() -> tuple[int, int]:
        return os.getpid(), in_fork(lambda: subscriber.process)

    between, grandchild = in_fork(child)
    assert len({os.getpid(), between, grandchild}) == 3


def test_a_subscription_keeps_nothing_alive() -> None:
    subscriber = Subscriber()
    rearm_after_fork(subscriber)
    alive = weakref.ref(subscriber)
    del subscriber
    gc.collect()
    assert alive() is None


def test_a_subscription_twice_is_one(in_fork: Callable[..., Any]) -> None:
    calls: list[int] = []

    class Counting:
        def after_fork(self) -> None:
            calls.append(1)

    subscriber = Counting()
    rearm_after_fork(subscriber)
    rearm_after_fork(subscriber)
    assert in_fork(lambda: len(calls)) == 1


@pytest.mark.skipif(not hasattr(os, "register_at_fork"), reason="this system does not fork")
def test_subscribing_while_others_fork(in_fork: Callable[..., Any]) -> None:
    """A table that another thread is filling must not keep the child from re-arming."""
    first = Subscriber()
    rearm_after_fork(first)
    stop = threading.Event()

    def subscribe() -> None:
        while not stop.is_set():
            rearm_after_fork(Subscriber())

    thread = threading.Thread(target=subscribe)
    thread.start()
    try:
        for _ in range(20):
            assert in_fork(lambda: first.process) != os.getpid()
    finally:
        stop.set()
        thread.join()


def test_a_pool_closes_in_a_child_forked_while_another_closes(
    in_fork: Callable[..., Any],
) -> None:
    def close() -> str:
        pool_module.TaskPool(1, "child").close()
        return "closed"

    with pool_module._closing_lock:  # as another thread holds it for a moment
        assert in_fork(close) == "closed"
