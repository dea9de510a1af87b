"""The tracker: paths in calls, threads, tasks, generators and recursion."""

from __future__ import annotations

import asyncio
import inspect
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from devicecore.migrate.patching import tracker as module
from devicecore.migrate.patching.tracker import UNSET, SparseContextTracker

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Generator, Iterator

ITEM = ("app:Dataset", "__getitem__")
RESIZE = ("cv2:resize",)
BLUR = ("cv2:blur",)


@pytest.fixture
def tracker() -> Iterator[SparseContextTracker]:
    made = SparseContextTracker()
    yield made
    assert made.current() is made.root  # whatever happened, nothing is left on the path


def test_a_key_joins_the_segments_of_all_frames(tracker: SparseContextTracker) -> None:
    assert tracker.current_key() == ""
    tracker.enter(ITEM)
    node = tracker.enter(RESIZE)
    assert tracker.current_key() == "app:Dataset/__getitem__/cv2:resize"
    assert tracker.current() is node
    assert node.path == (ITEM, RESIZE)
    tracker.exit()
    assert tracker.current_key() == "app:Dataset/__getitem__"
    tracker.exit()


def test_leaving_what_was_not_entered_is_an_error(tracker: SparseContextTracker) -> None:
    with pytest.raises(RuntimeError, match="nothing was entered in this context"):
        tracker.exit()


def test_the_same_path_is_the_same_node_and_keeps_what_was_decided(
    tracker: SparseContextTracker,
) -> None:
    with tracker.inside(ITEM), tracker.inside(RESIZE) as node:
        assert node.decision is UNSET
        node.decision = "cuda:0"
    with tracker.inside(RESIZE) as other:
        assert other.decision is UNSET
    with tracker.inside(ITEM), tracker.inside(RESIZE) as again:
        assert again is node
        assert again.decision == "cuda:0"


def test_at_enters_nothing(tracker: SparseContextTracker) -> None:
    with tracker.inside(ITEM) as item:
        node = tracker.at(RESIZE)
        assert tracker.current() is item
        with tracker.inside(RESIZE) as entered:
            assert entered is node


def test_inside_puts_back_what_was_there_also_after_an_error(tracker: SparseContextTracker) -> None:
    with tracker.inside(ITEM) as item:
        with suppress(KeyError), tracker.inside(RESIZE):
            tracker.enter(BLUR)  # and never left
            raise KeyError
        assert tracker.current() is item


def test_two_trackers_do_not_see_each_other(tracker: SparseContextTracker) -> None:
    other = SparseContextTracker()
    with tracker.inside(ITEM):
        assert other.current_key() == ""


def test_a_thread_begins_outside_and_shares_the_nodes(tracker: SparseContextTracker) -> None:
    seen: list[Any] = []

    def work() -> None:
        seen.append(tracker.current_key())
        with tracker.inside(ITEM) as node:
            seen.append(node)

    with tracker.inside(ITEM) as node:
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    assert seen == ["", node]


def test_threads_that_grow_the_trie_together_agree_on_its_nodes(
    tracker: SparseContextTracker,
) -> None:
    start = threading.Barrier(8)
    nodes: list[set[Any]] = [set() for _ in range(200)]

    def work() -> None:
        start.wait()
        for place, found in enumerate(nodes):
            with tracker.inside((f"m:f{place}",)), tracker.inside(RESIZE) as node:
                found.add(node)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [len(found) for found in nodes] == [1] * 200


def test_tasks_have_paths_of_their_own(tracker: SparseContextTracker) -> None:
    async def work(frame: tuple[str, ...]) -> list[str]:
        seen = []
        for _ in range(3):
            await asyncio.sleep(0)
            with tracker.inside(RESIZE):
                seen.append(tracker.current_key())
        return seen

    async def main() -> list[list[str]]:
        tracked = tracker.tracked(work, ITEM), tracker.tracked(work, BLUR)
        answers = await asyncio.gather(*(each(ITEM) for each in tracked))
        assert tracker.current() is tracker.root
        return answers

    expected = [["app:Dataset/__getitem__/cv2:resize"] * 3, ["cv2:blur/cv2:resize"] * 3]
    assert asyncio.run(main()) == expected


def test_a_task_made_inside_begins_there(tracker: SparseContextTracker) -> None:
    async def inner() -> str:
        return tracker.current_key()

    async def outer() -> asyncio.Task[str]:
        return asyncio.create_task(inner())

    async def main() -> str:
        return await (await tracker.tracked(outer, ITEM)())

    assert asyncio.run(main()) == "app:Dataset/__getitem__"


def test_a_generator_is_on_the_path_in_its_steps_only(tracker: SparseContextTracker) -> None:
    def steps() -> Generator[str, str, str]:
        try:
            sent = yield tracker.current_key()
            yield f"{sent} {tracker.current_key()}"
        finally:
            closed.append(tracker.current_key())
        return "never"

    closed: list[str] = []
    tracked = tracker.tracked(steps, ITEM)
    assert inspect.isgeneratorfunction(tracked)
    running = tracked()
    assert next(running) == "app:Dataset/__getitem__"
    assert tracker.current() is tracker.root
    with tracker.inside(BLUR) as blur:
        assert running.send("then") == "then cv2:blur/app:Dataset/__getitem__"
        assert tracker.current() is blur
    running.close()
    assert closed == ["app:Dataset/__getitem__"]


def test_a_generator_that_other_threads_drive(tracker: SparseContextTracker) -> None:
    def steps() -> Iterator[str]:
        while True:
            yield tracker.current_key()

    running = tracker.tracked(steps, ITEM)()
    seen = [next(running)]
    thread = threading.Thread(target=lambda: seen.append(next(running)))
    thread.start()
    thread.join()
    assert [*seen, next(running)] == ["app:Dataset/__getitem__"] * 3


def test_an_async_generator_is_on_the_path_in_its_steps_only(tracker: SparseContextTracker) -> None:
    async def steps() -> AsyncGenerator[str, None]:
        yield tracker.current_key()
        await asyncio.sleep(0)
        yield tracker.current_key()

    async def main() -> list[str]:
        seen = []
        async for key in tracked():
            seen += [key, tracker.current_key()]
        return seen

    tracked = tracker.tracked(steps, ITEM)
    assert inspect.isasyncgenfunction(tracked)
    assert asyncio.run(main()) == ["app:Dataset/__getitem__", ""] * 2


def test_an_error_thrown_into_a_generator_leaves_nothing_behind(
    tracker: SparseContextTracker,
) -> None:
    def steps() -> Iterator[str]:
        try:
            yield tracker.current_key()
        except KeyError:
            yield f"caught in {tracker.current_key()}"

    running: Any = tracker.tracked(steps, ITEM)()
    assert next(running) == "app:Dataset/__getitem__"
    assert running.throw(KeyError()) == "caught in app:Dataset/__getitem__"
    assert tracker.current_key() == ""
    assert list(running) == []


def test_tracked_methods_and_plain_functions_stay_what_they_are(
    tracker: SparseContextTracker,
) -> None:
    class Dataset:
        @staticmethod
        def fixed() -> str:
            return tracker.current_key()

        def key(self) -> str:
            """Say where."""
            return tracker.current_key()

    tracked = tracker.tracked(Dataset.key, ITEM)
    assert (tracked.__qualname__, tracked.__doc__) == (Dataset.key.__qualname__, "Say where.")
    assert tracked(Dataset()) == "app:Dataset/__getitem__"
    assert tracker.tracked(Dataset.fixed, BLUR)() == "cv2:blur"
    with pytest.raises(TypeError, match="is a class"):
        tracker.tracked(Dataset, ITEM)


def _nodes(node: Any) -> int:
    return 1 + sum(map(_nodes, node.children.values()))


def test_a_deep_recursion_keeps_a_bounded_number_of_nodes(tracker: SparseContextTracker) -> None:
    def recurse(left: int) -> str:
        with tracker.inside(ITEM):
            return recurse(left - 1) if left else tracker.current_key()

    assert recurse(700) == "/".join(["app:Dataset/__getitem__"] * 701)
    assert _nodes(tracker.root) == module.MOST_DEPTH + 1


def test_ever_new_frames_do_not_fill_the_memory(
    tracker: SparseContextTracker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MOST_NODES", 50)
    for number in range(200):
        frame = (f"m:f{number}",)
        with tracker.inside(frame), tracker.inside(RESIZE) as node:
            assert node.path == (frame, RESIZE)
    assert _nodes(tracker.root) == 51
    with tracker.inside(("m:f0",)) as old:
        assert old.is_kept


def test_a_forked_child_grows_the_trie_though_a_thread_held_the_lock(
    tracker: SparseContextTracker, in_fork: Any
) -> None:
    def child() -> str:
        with tracker.inside(RESIZE):
            return tracker.current_key()

    with tracker._lock:
        assert in_fork(child) == "cv2:resize"


_programs: st.SearchStrategy[list[Any]] = st.recursive(
    st.just([]),
    lambda inner: st.lists(
        st.tuples(st.sampled_from([ITEM, RESIZE, BLUR]), st.booleans(), inner), max_size=3
    ),
    max_leaves=20,
)


@given(_programs)
def test_random_nests_of_calls(program: list[Any]) -> None:
    """Each call sees the frames around it, whichever of them fail."""
    tracker = SparseContextTracker()

    def run(calls: list[Any], around: tuple[Any, ...]) -> None:
        assert tracker.current().path == around
        for frame, fails, inner in calls:
            with suppress(KeyError), tracker.inside(frame):
                run(inner, (*around, frame))
                if fails:
                    raise KeyError
            assert tracker.current().path == around

    run(program, ())
