"""What a device keeps between calls."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest

from devicecore.errors import UnknownResourceError
from devicecore.resources import OpSegment, ResourceMgr

if TYPE_CHECKING:
    from collections.abc import Callable


class Closable:
    def __init__(self) -> None:
        self.closed = 0

    def close(self) -> None:
        self.closed += 1


class ClosesBadly(Closable):
    def close(self) -> None:
        super().close()
        raise RuntimeError


@pytest.fixture
def resources() -> ResourceMgr:
    return ResourceMgr()


class TestResourceMgr:
    def test_a_resource_is_made_once(self, resources: ResourceMgr) -> None:
        made = resources.lookup_or_create("models", "a", Closable)
        assert resources.lookup_or_create("models", "a", Closable) is made
        assert resources.lookup("models", "a") is made
        assert resources.lookup_or_create("models", "b", Closable) is not made
        assert resources.lookup_or_create("others", "a", Closable) is not made
        assert resources.containers() == {"models": 2, "others": 1}

    def test_none_is_a_resource_like_any_other(self, resources: ResourceMgr) -> None:
        calls: list[int] = []
        for _ in range(2):
            resources.lookup_or_create("c", "n", lambda: calls.append(1))
        assert len(calls) == 1
        assert resources.lookup("c", "n") is None

    def test_what_is_not_there_is_an_error(self, resources: ResourceMgr) -> None:
        for ask in (resources.lookup, resources.delete):
            with pytest.raises(UnknownResourceError) as caught:
                ask("models", ("a", 1))
            assert (caught.value.container, caught.value.name) == ("models", "('a', 1)")

    def test_what_cannot_be_made_is_tried_again(self, resources: ResourceMgr) -> None:
        def fail() -> None:
            raise ZeroDivisionError

        for _ in range(2):
            with pytest.raises(ZeroDivisionError):
                resources.lookup_or_create("models", "a", fail)
        with pytest.raises(UnknownResourceError):
            resources.lookup("models", "a")
        assert resources.containers() == {"models": 0}
        assert resources.lookup_or_create("models", "a", lambda: 3) == 3

    def test_what_is_dropped_is_closed_once(self, resources: ResourceMgr) -> None:
        things = [
            resources.lookup_or_create(f"c{number % 2}", number, Closable) for number in range(6)
        ]
        resources.delete("c0", 0)
        assert [thing.closed for thing in things] == [1, 0, 0, 0, 0, 0]
        resources.clear("c0")
        assert [thing.closed for thing in things] == [1, 0, 1, 0, 1, 0]
        resources.clear("no such container")
        resources.clear()
        assert [thing.closed for thing in things] == [1] * 6
        assert resources.containers() == {}

    def test_what_cannot_be_closed_hinders_nobody(self, resources: ResourceMgr) -> None:
        bad = resources.lookup_or_create("c", "bad", ClosesBadly)
        good = resources.lookup_or_create("c", "good", Closable)
        resources.clear()
        assert (bad.closed, good.closed) == (1, 1)

    def test_who_comes_at_once_gets_the_same(self, resources: ResourceMgr) -> None:
        start = threading.Barrier(8)

        def work() -> Closable:
            start.wait()
            return resources.lookup_or_create("c", "shared", Closable)

        with ThreadPoolExecutor(8) as threads:
            found = [future.result() for future in [threads.submit(work) for _ in range(8)]]
        assert len({id(each) for each in found}) == 1

    def test_making_one_does_not_hold_up_the_others(self, resources: ResourceMgr) -> None:
        making, go_on = threading.Event(), threading.Event()

        def slow() -> str:
            making.set()
            assert go_on.wait(60)
            return "slow"

        with ThreadPoolExecutor(1) as threads:
            future = threads.submit(resources.lookup_or_create, "c", "slow", slow)
            assert making.wait(60)
            # All this would wait for ever if a lock were held.
            assert resources.lookup_or_create("c", "quick", lambda: 1) == 1
            assert resources.containers() == {"c": 1}
            with pytest.raises(UnknownResourceError):
                resources.lookup("c", "slow")
            go_on.set()
            assert future.result() == "slow"

    def test_making_one_may_make_another(self, resources: ResourceMgr) -> None:
        def outer() -> int:
            return 1 + resources.lookup_or_create("c", "inner", lambda: 1)

        assert resources.lookup_or_create("c", "outer", outer) == 2

    def test_one_that_is_dropped_while_it_is_made_is_still_delivered(
        self, resources: ResourceMgr
    ) -> None:
        def make() -> Closable:
            resources.clear()
            return Closable()

        first = resources.lookup_or_create("c", "n", make)
        assert first.closed == 0
        assert resources.lookup_or_create("c", "n", Closable) is not first

    def test_a_forked_child_starts_empty(
        self, resources: ResourceMgr, in_fork: Callable[..., Any]
    ) -> None:
        mine = resources.lookup_or_create("c", "n", Closable)
        with resources._lock:
            assert in_fork(lambda: resources.lookup_or_create("c", "n", lambda: "new")) == "new"
        assert resources.lookup("c", "n") is mine
        assert mine.closed == 0


class TestOpSegment:
    def test_kernels_live_as_long_as_their_session_is_held(self) -> None:
        segment = OpSegment()
        segment.add_hold("s")
        segment.add_hold("s")
        kept = segment.find_or_create("s", "node", Closable)
        segment.remove_hold("s")
        assert segment.find_or_create("s", "node", Closable) is kept
        assert kept.closed == 0
        segment.remove_hold("s")
        assert kept.closed == 1
        with pytest.raises(UnknownResourceError):
            segment.find_or_create("s", "node", Closable)
        segment.add_hold("s")
        assert segment.find_or_create("s", "node", Closable) is not kept

    def test_sessions_do_not_share(self) -> None:
        segment = OpSegment()
        for session in ("a", "b"):
            segment.add_hold(session)
        mine = segment.find_or_create("a", "node", Closable)
        assert segment.find_or_create("b", "node", Closable) is not mine
        segment.remove_hold("b")
        assert segment.find_or_create("a", "node", Closable) is mine

    def test_nobody_holds_an_unknown_session(self) -> None:
        segment = OpSegment()
        with pytest.raises(UnknownResourceError):
            segment.find_or_create("s", "node", Closable)
        with pytest.raises(UnknownResourceError):
            segment.remove_hold("s")

    def test_clearing_drops_all(self) -> None:
        segment = OpSegment()
        segment.add_hold("s")
        kept = segment.find_or_create("s", "node", Closable)
        segment.clear()
        assert kept.closed == 1
        with pytest.raises(UnknownResourceError):
            segment.find_or_create("s", "node", Closable)

    def test_a_forked_child_keeps_the_session_and_not_its_kernels(
        self, in_fork: Callable[..., Any]
    ) -> None:
        segment = OpSegment()
        segment.add_hold("s")
        segment.find_or_create("s", "node", lambda: "parent's")
        with segment._lock:
            assert in_fork(lambda: segment.find_or_create("s", "node", lambda: "new")) == "new"
