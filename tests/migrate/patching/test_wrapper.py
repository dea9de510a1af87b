"""Wrappers: which calls are asked about, how often, and what runs inside of which frame."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, Any

import pytest

from devicecore.migrate.patching.injector import PatchInjector
from devicecore.migrate.patching.kernel_context import InsideKernels
from devicecore.migrate.patching.tracker import UNSET, SparseContextTracker
from devicecore.migrate.patching.wrapper import UniversalWrapper

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from devicecore.migrate.patching.tracker import CallPath


class Told:
    """A site that answers itself, and writes down what it was called with."""

    def __init__(self, answer: Callable[..., Any]) -> None:
        self.answer = answer
        self.calls: list[Any] = []

    def call(self, original: Any, args: Any, kwargs: Any) -> Any:
        self.calls.append((original, args, kwargs))
        return self.answer(original, *args, **kwargs)


class Patched:
    """A module whose functions are wrapped, with all that was asked about."""

    def __init__(self, made: Any) -> None:
        self.made = made
        self.tracker = SparseContextTracker()
        self.asked: list[str] = []
        self.sites: dict[str, Any] = {}
        self.wrapper = UniversalWrapper(self.tracker, self._decide)
        self.injector = PatchInjector()

    def _decide(self, node: CallPath) -> Any:
        self.asked.append(node.key)
        return self.sites.get(node.key)

    def leaf(self, owner: Any, name: str) -> None:
        self.injector.add(owner, name, self.wrapper.of_leaf((name,)))

    def frame(self, owner: Any, name: str) -> None:
        self.injector.add(owner, name, self.wrapper.of_frame((name,)))


@pytest.fixture
def patched(made: Any, no_trace: None) -> Iterator[Patched]:
    one = Patched(made)
    one.injector.apply_all()
    yield one
    one.injector.restore_all()
    assert one.tracker.current() is one.tracker.root


def test_calls_off_the_plan_are_passed_on_and_asked_about_once(patched: Patched) -> None:
    patched.leaf(patched.made, "plain")
    assert [patched.made.plain(1, y=5, z=7) for _ in range(5)] == [13] * 5
    assert patched.asked == ["plain"]


def test_a_path_is_decided_once_and_then_not_asked_about(patched: Patched) -> None:
    told = patched.sites["plain"] = Told(lambda original, x, **_: (original(x), "migrated"))
    patched.leaf(patched.made, "plain")
    assert [patched.made.plain(1, z=0) for _ in range(3)] == [(6, "migrated")] * 3
    assert patched.asked == ["plain"]
    assert told.calls[0][1:] == ((1,), {"z": 0})
    patched.tracker.root.children["plain",].decision = UNSET
    patched.made.plain(1)
    assert patched.asked == ["plain", "plain"]


def test_the_path_of_a_call_is_that_of_the_frames_around(patched: Patched) -> None:
    made = patched.made
    patched.frame(made.Model, "forward")
    patched.frame(made.Base, "__call__")
    patched.leaf(made, "plain")
    model = made.Model()
    assert model(3) == 9
    made.plain(1)
    patched.sites["__call__/forward"] = Told(lambda original, _, x: original(model, x + 1))
    patched.tracker.root.children["__call__",].children["forward",].decision = UNSET
    assert model(3) == 12
    assert model.forward(3) == 9  # another path
    assert patched.asked == ["__call__", "__call__/forward", "plain", "__call__/forward", "forward"]


def test_frames_are_left_when_something_is_raised(patched: Patched) -> None:
    patched.frame(patched.made, "plain")
    with pytest.raises(TypeError):
        patched.made.plain(None)
    assert patched.tracker.current_key() == ""


def test_nothing_inside_of_a_kernel_is_migrated(patched: Patched) -> None:
    patched.sites["plain"] = Told(lambda *_: "migrated")
    patched.leaf(patched.made, "plain")
    with InsideKernels():
        assert patched.made.plain(1) == 6
    assert patched.asked == []
    assert patched.made.plain(1) == "migrated"


def test_generators_and_coroutines_stay_what_they_are_and_are_frames(patched: Patched) -> None:
    made = patched.made
    seen: list[str] = []
    for name in ("steps", "later", "stream"):
        patched.frame(made, name)
        patched.sites[name] = Told(lambda *_: pytest.fail("it runs later"))

    def numbers(count: int) -> range:
        seen.append(patched.tracker.current_key())
        return range(count)

    made.range = numbers
    steps = made.steps(3)
    assert next(steps) == 0
    assert patched.tracker.current_key() == ""
    assert list(steps) == [1, 2]
    assert asyncio.run(made.later(4)) == 4

    async def collected() -> list[int]:
        return [each async for each in made.stream(2)]

    assert asyncio.run(collected()) == [0, 1]
    assert seen == ["steps", "stream"]
    assert patched.asked == []


def test_a_wrapper_that_somebody_kept_does_nothing_any_more(patched: Patched) -> None:
    told = patched.sites["plain"] = Told(lambda *_: "migrated")
    patched.leaf(patched.made, "plain")
    patched.frame(patched.made, "steps")
    kept, others = patched.made.plain, patched.made.Model.fixed
    assert kept(1) == "migrated"
    patched.injector.restore_all()
    assert kept(1) == 6
    assert len(told.calls) == 1
    assert others(1) == 2
    patched.injector.apply_all()


def test_threads_have_paths_of_their_own(patched: Patched) -> None:
    made, found = patched.made, []
    inside, go_on = threading.Event(), threading.Event()

    def wait(original: Any, x: int) -> Any:
        inside.set()
        assert go_on.wait(30)
        return original(x)

    patched.sites["plain"] = Told(wait)
    patched.frame(made, "plain")
    patched.leaf(made.Model, "fixed")
    thread = threading.Thread(target=lambda: found.append(made.plain(1)))
    thread.start()
    assert inside.wait(30)
    made.Model.fixed(1)
    go_on.set()
    thread.join()
    assert found == [6]
    assert patched.asked == ["plain", "fixed"]
