"""The migrator: what is patched when, by which names, and put back."""

from __future__ import annotations

import asyncio
import importlib
import inspect
import sys
import threading
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
cv2 = pytest.importorskip("cv2")

from devicecore.errors import NoKernelError, PlanError  # noqa: E402 - after cv2
from devicecore.ledger import default_ledger  # noqa: E402
from devicecore.migrate import (  # noqa: E402
    EnsureTensor,
    MigrationStrategy,
    PipelineMigrator,
    StrategyRegistry,
)
from devicecore.scope import device_scope  # noqa: E402
from tests.migrate.sites import By  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

TORCH = {"device": "cpu", "kernel": "torch"}
PLAN = {"cv2.flip": TORCH}
IMAGE = np.arange(12, dtype=np.uint8).reshape(2, 2, 3)


@pytest.fixture(scope="module", autouse=True)
def _scopes_are_ready() -> None:
    with device_scope("cpu"):  # the first one looks at imports from then on
        pass


@pytest.fixture(autouse=True)
def _nothing_is_left(no_trace: None) -> Iterator[None]:
    default_ledger().clear()
    yield
    default_ledger().clear()


def migrated(migrator: PipelineMigrator) -> dict[str, int]:
    return {row.path: row.migrated for row in migrator.report().rows}


def flips(migrator: PipelineMigrator) -> int:
    before = sum(migrated(migrator).values())
    assert (cv2.flip(IMAGE, 1) == IMAGE[:, ::-1]).all()
    return sum(migrated(migrator).values()) - before


def test_activation_is_counted() -> None:
    migrator = PipelineMigrator(PLAN)
    original = cv2.flip
    assert flips(migrator) == 0
    migrator.deactivate()  # one too many
    assert migrator.activate() is migrator
    migrator.activate()
    assert flips(migrator) == 1
    migrator.deactivate()
    assert flips(migrator) == 1
    migrator.deactivate()
    assert cv2.flip is original
    migrator.deactivate()
    with migrator:
        assert flips(migrator) == 1
    assert cv2.flip is original
    assert migrated(migrator) == {"cv2:flip": 3}


def test_functions_are_back_after_an_error() -> None:
    original = cv2.flip
    migrator = PipelineMigrator(PLAN)
    with pytest.raises(ZeroDivisionError), migrator:
        1 / 0  # noqa: B018 - as a program may
    assert cv2.flip is original


def test_the_environment_turns_it_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DEVICECORE_MIGRATE", "off")
    original = cv2.flip
    with PipelineMigrator(PLAN) as migrator, migrator:
        assert cv2.flip is original
        migrator.refresh()
        assert cv2.flip is original
    monkeypatch.delenv("DEVICECORE_MIGRATE")
    with migrator:
        assert flips(migrator) == 1


def test_it_decorates_functions_of_all_kinds() -> None:
    migrator = PipelineMigrator(PLAN)

    @migrator
    def plain(count: int) -> int:
        """Flip."""
        return sum(flips(migrator) for _ in range(count))

    @migrator
    async def later() -> int:
        await asyncio.sleep(0)
        return flips(migrator)

    @migrator
    def steps() -> Any:
        sent = yield flips(migrator)
        yield sent + flips(migrator)

    assert (plain.__doc__, plain(2)) == ("Flip.", 2)
    assert inspect.iscoroutinefunction(later)
    assert asyncio.run(later()) == 1
    assert inspect.isgeneratorfunction(steps)
    original = cv2.flip
    running = steps()
    assert cv2.flip is original  # it has not begun
    assert next(running) == 1
    assert running.send(10) == 11
    running.close()
    assert cv2.flip is original

    async def stream() -> Any:
        yield 1

    with pytest.raises(TypeError, match="with block"):
        migrator(stream)


@pytest.mark.parametrize("device", ["cpu", {"device": "cpu", "kernel": "native"}, "auto"])
def test_what_is_to_be_the_original_is(device: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DEVICECORE_PREFER", "cpu")
    with PipelineMigrator({"cv2.flip": device}) as migrator:
        assert flips(migrator) == 0
        assert migrator.report().rows == []
    assert default_ledger().total == 0


@pytest.mark.parametrize("device", ["xpu:0", "cpu:7"])
def test_a_device_that_is_not_here_leaves_calls_on_the_host_and_says_so(device: str) -> None:
    entry = {"device": device, "kernel": "torch"}
    with PipelineMigrator({"cv2.flip": entry}) as migrator:
        assert flips(migrator) == flips(migrator) == 0
        (row,) = migrator.report().rows
    assert (row.device, row.calls, row.fell_back) == (device, 2, 2)
    assert len(row.reasons) == 1
    (move,) = default_ledger().moves()
    assert (move.op, move.source) == ("cv2:flip", device)
    with PipelineMigrator({"cv2.flip": entry}, strict=True), pytest.raises(NoKernelError):
        cv2.flip(IMAGE, 1)


def test_strict_is_for_calls_without_kernel() -> None:
    several = np.ones((2, 3, 4, 5), np.uint8)
    with PipelineMigrator({"cv2.add": TORCH, "cv2.blur": TORCH}, strict=True) as migrator:
        with pytest.raises(NoKernelError, match="4 axes"):
            cv2.add(several, several)
        with pytest.raises(cv2.error):  # nobody can
            cv2.blur(IMAGE, (0, 0))
        assert cv2.blur(IMAGE, (3, 3)).shape == IMAGE.shape
    assert migrated(migrator) == {"cv2:add": 0, "cv2:blur": 1}
    assert default_ledger().total == 0


# --- several migrators, modules that come and go --------------------------------------------------


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 0, 2), (1, 2, 0)])
def test_several_migrators_in_any_order(order: tuple[int, ...]) -> None:
    original = cv2.flip
    several = [PipelineMigrator(PLAN) for _ in range(3)]
    for each in several:
        each.activate()
    left = set(range(3))
    for index in order:
        flips(several[0])
        counts = [sum(migrated(each).values()) for each in several]
        assert sum(counts) == 4 - len(left)  # only the last one that is left computes it
        several[index].deactivate()
        left.discard(index)
    assert cv2.flip is original


def test_a_module_that_is_imported_later(write: Callable[..., None]) -> None:
    write(
        made_late="import cv2\ndef prepare(x):\n    return cv2.flip(x, 1)\n"
        "class Reader:\n    def read(self, x):\n        return cv2.flip(x, 1)\n"
    )
    plan = {"made_late.prepare": TORCH, "made_late:Reader/read/cv2.flip": TORCH}
    with PipelineMigrator(plan) as migrator:
        late: Any = importlib.import_module("made_late")
        original = late.prepare.__wrapped__
        assert (late.prepare(IMAGE) == IMAGE[:, ::-1]).all()
        assert (late.Reader().read(IMAGE) == IMAGE[:, ::-1]).all()
        cv2.flip(IMAGE, 1)
    assert late.prepare is original
    assert migrated(migrator) == {
        "made_late:prepare": 1,
        "made_late:prepare/cv2:flip": 1,
        "made_late:Reader/read/cv2:flip": 1,
    }


def test_a_module_that_another_thread_is_importing(write: Callable[..., None]) -> None:
    write(
        made_events="import threading\ninside, go_on = threading.Event(), threading.Event()\n",
        made_slow="import made_events\nmade_events.inside.set()\n"
        "assert made_events.go_on.wait(30)\ndef f(x):\n    return x\n",
        made_after="",
    )
    events: Any = importlib.import_module("made_events")
    thread = threading.Thread(target=importlib.import_module, args=("made_slow",))
    thread.start()
    assert events.inside.wait(30)
    with PipelineMigrator({"made_slow.f": TORCH}) as migrator:
        events.go_on.set()
        thread.join()
        importlib.import_module("made_after")  # nothing announces the end of the other import
        assert sys.modules["made_slow"].f(3) == 3
    assert migrated(migrator) == {"made_slow:f": 1}


def test_a_module_that_is_executed_anew_or_forgotten(write: Callable[..., None]) -> None:
    write(made_late="import cv2\ndef prepare(x):\n    return cv2.flip(x, 1)\n")
    late: Any = importlib.import_module("made_late")
    with PipelineMigrator({"made_late.prepare": TORCH}) as migrator:
        late.prepare(IMAGE)
        importlib.reload(late)
        late.prepare(IMAGE)
        assert migrated(migrator)["made_late:prepare"] == 2
    assert not hasattr(late.prepare, "__wrapped__")
    del sys.modules["made_late"]
    again: Any = importlib.import_module("made_late")
    with migrator:
        again.prepare(IMAGE)
        assert migrated(migrator)["made_late:prepare/cv2:flip"] == 3
    assert not hasattr(again.prepare, "__wrapped__")


def test_what_a_path_has_led_to_stays_known_when_more_is_imported(
    write: Callable[..., None],
) -> None:
    write(made_late="def f():\n    pass\n")
    registry = StrategyRegistry()
    registry.register("cv2.flip", MigrationStrategy(lambda *_: "wrong"))
    plan = PLAN | {"made_late.f": TORCH}
    with PipelineMigrator(plan, registry, verify=1) as migrator:
        assert flips(migrator) == 0
        importlib.import_module("made_late")
        migrator.refresh()
        for _ in range(3):
            flips(migrator)
        (row,) = migrator.report().rows
    assert (row.calls, row.migrated) == (4, 0)


def test_a_function_is_found_by_any_of_its_names(write: Callable[..., None]) -> None:
    write(made_inner="def f(x):\n    return x\n", made_outer="from made_inner import f\n")
    inner, outer = (importlib.import_module(name) for name in ("made_inner", "made_outer"))
    registry = StrategyRegistry()
    registry.register("made_outer.f", MigrationStrategy(lambda _: "the device's"))
    for name in ("made_outer.f", "made_inner.f"):
        with PipelineMigrator({name: TORCH}, registry):
            assert (inner.f(1), outer.f(1)) == ("the device's", "the device's")
    assert (inner.f(1), outer.f(1)) == (1, 1)


def test_strategies_of_methods_work_inside_of_frames(write: Callable[..., None]) -> None:
    write(
        made_late="class Picture:\n    def turn(self, n):\n        return n\n"
        "def prepare(picture):\n    return picture.turn(3)\n"
    )
    late: Any = importlib.import_module("made_late")
    registry = StrategyRegistry()
    registry.register("made_late.Picture.turn", By(lambda _, n: -n))
    with PipelineMigrator({"made_late.prepare": TORCH}, registry):
        assert late.prepare(late.Picture()) == -3
        assert late.Picture().turn(3) == 3


def test_what_has_a_strategy_is_computed_by_it_inside_of_frames(write: Callable[..., None]) -> None:
    write(made_late="import cv2\ndef prepare(x):\n    return cv2.flip(x, 1)\n")
    late: Any = importlib.import_module("made_late")
    registry = StrategyRegistry()
    registry.register("cv2.flip", By(lambda *_: "the device's"))
    with PipelineMigrator({"made_late.prepare": TORCH}, registry):
        assert late.prepare(IMAGE) == "the device's"
        assert np.array_equal(cv2.flip(IMAGE, 1), IMAGE[:, ::-1])


def test_a_plan_that_cannot_be_patched_leaves_nothing() -> None:
    with pytest.raises(PlanError, match="flop"):
        PipelineMigrator(PLAN | {"cv2.flop": TORCH}).activate()
    with pytest.raises(PlanError, match="written in C"):
        PipelineMigrator(PLAN | {"builtins:list/sort": TORCH, "made_never.f": TORCH}).activate()


def test_errors_inside_of_a_frame_are_the_programs(write: Callable[..., None]) -> None:
    write(
        made_late="import cv2\nclass Own(Exception):\n    pass\ncount = 0\n"
        "def prepare(x):\n    global count\n    count += 1\n    cv2.flip(x, 1)\n    raise Own(x)\n"
    )
    late: Any = importlib.import_module("made_late")
    with PipelineMigrator({"made_late.prepare": TORCH}) as migrator:
        with pytest.raises(late.Own) as caught:
            late.prepare(IMAGE)
        assert caught.value.args[0] is IMAGE
        assert caught.value.__cause__ is caught.value.__context__ is None
        with pytest.raises(TypeError, match="positional argument"):
            late.prepare()
        assert late.count == 1
        cv2.flip(IMAGE, 1)  # outside of all frames, whatever was raised
    assert migrated(migrator)["made_late:prepare/cv2:flip"] == 1
    assert "cv2:flip" not in migrated(migrator)


@pytest.mark.long
def test_deactivation_while_threads_are_inside() -> None:
    migrator = PipelineMigrator(PLAN)
    original, wrong = cv2.flip, []
    expected = original(IMAGE, 1)
    stop = threading.Event()

    def work() -> None:
        while not stop.is_set():
            if not np.array_equal(cv2.flip(IMAGE, 1), expected):
                wrong.append(0)

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for _ in range(10):
        with migrator:
            flips(migrator)
    stop.set()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert cv2.flip is original
    assert migrator.report().rows[0].fell_back == 0


def test_what_devicecore_holds_of_opencv_is_nobodys_concern() -> None:
    mine = [cv2.flip]
    with PipelineMigrator(PLAN) as migrator:
        flips(migrator)
        held = migrator.report().still_held
    # The other one is what `no_trace` compares with.
    assert held == ["cv2.flip: item 0 of a list of 1", "cv2.flip: item 1 of a tuple of 2"]
    assert mine == [cv2.flip]


def test_paths_without_end_are_counted_together(write: Callable[..., None]) -> None:
    write(
        made_late="import cv2\ndef deep(x, n):\n"
        "    return deep(x, n - 1) if n else cv2.flip(x, 1)\n"
    )
    late: Any = importlib.import_module("made_late")
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(10_000)
    try:
        with PipelineMigrator({"made_late.deep/**/cv2.flip": TORCH}) as migrator:
            for depth in (300, 301, 302):
                late.deep(IMAGE, depth)
    finally:
        sys.setrecursionlimit(limit)
    assert migrated(migrator) == {"**/cv2:flip": 3}


def test_the_example_of_a_strategy_of_ones_own(write: Callable[..., None]) -> None:
    write(made_late="def mean(values):\n    return sum(values) / len(values)\n")
    late: Any = importlib.import_module("made_late")
    registry = StrategyRegistry()

    @registry.register("made_late.mean", input_processors=[EnsureTensor()])  # type: ignore[untyped-decorator]
    def mean(values: Any) -> Any:
        return values.double().mean().item()

    with PipelineMigrator({"made_late.mean": TORCH}, registry, verify=1) as migrator:
        assert late.mean([1, 2, 6]) == 3.0
    assert migrated(migrator) == {"made_late:mean": 1}
