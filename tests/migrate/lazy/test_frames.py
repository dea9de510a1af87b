"""Recorded frames: what the caller gets, what a frame that runs anew does twice, and what stays."""

# ruff: noqa: NPY002 - programs draw from numpy's old generator

from __future__ import annotations

import asyncio
import collections
import dataclasses
import gc
import queue
import random
import threading
import weakref
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple, Self

import numpy as np
import pytest

torch = pytest.importorskip("torch")
cv2 = pytest.importorskip("cv2")

from devicecore.errors import DeviceGoneError, OutOfMemoryError, RefusedCallError  # noqa: E402
from devicecore.ledger import default_ledger  # noqa: E402 - after cv2
from devicecore.migrate import PipelineMigrator  # noqa: E402
from devicecore.migrate.lazy import executing  # noqa: E402
from devicecore.migrate.lazy.current import OPEN  # noqa: E402
from devicecore.migrate.lazy.device_array import DeviceArray  # noqa: E402
from devicecore.scope import device_scope  # noqa: E402
from tests.migrate.lazy import frames  # noqa: E402
from tests.migrate.lazy.frames import KEY, SCOPED, recorded, row  # noqa: E402
from tests.migrate.sites import assert_same  # noqa: E402

pytestmark = pytest.mark.usefixtures("no_trace")


@pytest.fixture(scope="module", autouse=True)
def _scopes_are_ready() -> None:
    with device_scope("cpu"):  # the first one looks at imports from then on
        pass


@pytest.fixture(autouse=True)
def _clean() -> Any:
    yield
    kept = set(OPEN)
    OPEN.clear()
    default_ledger().clear()
    assert all(isinstance(each, str) for each in kept)


def image(seed: int = 0) -> Any:
    return np.random.default_rng(seed).integers(0, 256, (16, 20, 3), dtype=np.uint8)


def small(given: Any) -> Any:
    return cv2.resize(given, (8, 6))


def refuse(array: Any) -> None:
    """Do what cannot be done with anything but an array of numpy, once."""
    if type(array) is DeviceArray:
        raise TypeError("refused")


# --- what the caller gets -------------------------------------------------------------------------


class Pair(NamedTuple):
    image: Any
    label: int


@dataclasses.dataclass(frozen=True)
class Sample:
    image: Any
    others: dict[str, Any]


class Slotted:
    __slots__ = ("image",)

    def __init__(self, value: Any) -> None:
        self.image = value


class Tagged(tuple):  # noqa: SLOT001 - it has attributes
    def __new__(cls, *values: Any) -> Self:
        return super().__new__(cls, values)


RESULTS: dict[str, Any] = {
    "array": lambda x: x,
    "list": lambda x: [x, [x, (x,)]],
    "dict": lambda x: {"image": x, "more": [{"image": x}]},
    "ordered": lambda x: collections.OrderedDict(image=x),
    "default": lambda x: collections.defaultdict(list, image=[x]),
    "deque": lambda x: collections.deque([x, x]),
    "namedtuple": lambda x: Pair(x, 3),
    "dataclass": lambda x: Sample(x, {"image": x[1:]}),
    "slots": Slotted,
    "tuple": lambda x: Tagged(x, 1),
    "deep": lambda x: [[[[[[x]]]]]],
    "views": lambda x: (x, x[1:, ::-1], x.transpose(2, 0, 1), x.T[0]),
    "set": lambda x: {1, 2, int(x[0, 0, 0])},
    "iterator": lambda x: iter([x.copy()]),
    "number": lambda x: x.mean(),
    "shape": lambda x: x.shape,
    "nothing": lambda x: None,
    "tensor": lambda x: torch.from_numpy(x).float(),
    "bool": lambda x: x > 3,
}


def _seen(value: Any) -> Any:
    """Return what of an object can be compared."""
    if isinstance(value, Slotted):
        return value.image
    if dataclasses.is_dataclass(value):
        return {each.name: getattr(value, each.name) for each in dataclasses.fields(value)}
    if isinstance(value, collections.deque):
        return list(value)
    if hasattr(value, "__next__"):
        return [np.asarray(each) for each in value]
    return value


@pytest.mark.parametrize("name", sorted(RESULTS))
def test_a_frame_returns_what_the_function_does(name: str) -> None:
    def function(given: Any) -> Any:
        return RESULTS[name](small(given))

    expected = function(image())
    with recorded() as (run, migrator):
        found = run(function, image())
        assert row(migrator).migrated == 1
    assert type(found) is type(expected)
    assert_same(_seen(found), _seen(expected))


def test_a_result_is_the_same_object_wherever_it_is() -> None:
    def function(given: Any) -> Any:
        x = small(given)
        return {"a": x, "b": [x], "part": x[1:]}

    with recorded() as (run, _):
        found = run(function, image())
    assert found["a"] is found["b"][0]
    found["a"][2] = 7
    assert (found["part"][1] == 7).all()


def test_arrays_that_are_kept_where_they_can_be_found() -> None:
    class Holder:
        def __init__(self) -> None:
            self.steps = [self]
            self.last: Any = None

        def run(self, given: Any, sample: dict[str, Any], rows: list[Any]) -> None:
            self.last = small(given)
            sample["image"] = self.last[1:]
            rows.append(cv2.flip(self.last, 1))

    def ran(run: Any) -> list[Any]:
        holder, sample, rows = Holder(), {"image": None}, []
        run(holder.run, image(), sample, rows=rows)
        return [holder.last, sample["image"], rows[0]]

    expected = ran(lambda function, *args, **kwargs: function(*args, **kwargs))
    with recorded() as (run, migrator):
        for _ in range(3):
            found = ran(run)
            assert_same(found, expected)
        assert row(migrator).migrated == 3
    assert np.shares_memory(found[0], found[1])


def test_arrays_that_are_kept_elsewhere_are_right_and_ever_usable() -> None:
    put: queue.Queue[Any] = queue.Queue()
    expected = small(image())

    def function(given: Any) -> Any:
        x = small(given)
        put.put(x)
        return None

    with recorded() as (run, migrator):
        run(function, image())
        run(function, image())
        found = put.get()
        assert_same(np.asarray(found), expected)
        assert_same(cv2.flip(found, 1), cv2.flip(expected, 1))
        assert_same(cv2.split(found), cv2.split(expected))
        assert type(put.get()) is np.ndarray  # the frame is not recorded any more
        assert "keeps arrays" in str(row(migrator).reasons)


def test_a_generator_that_a_frame_returns_goes_on_after_it() -> None:
    def steps(given: Any) -> Any:
        x = small(given)
        yield x
        yield cv2.flip(x, 1)

    def function(given: Any) -> Any:
        made = steps(given)
        return next(made).copy(), made

    one, rest = function(image())
    with recorded() as (run, _):
        found, more = run(function, image())
        assert_same([found, np.asarray(next(more))], [one, next(rest)])


def test_a_task_that_a_frame_starts_goes_on_after_it() -> None:
    async def later(x: Any) -> Any:
        await asyncio.sleep(0)
        return cv2.flip(cv2.resize(x, (3, 3)), 0)

    async def main(run: Any) -> Any:
        tasks: list[Any] = []

        def function(given: Any) -> Any:
            tasks.append(asyncio.get_running_loop().create_task(later(given)))
            return small(given)

        return run(function, image()), await tasks[0]

    expected = asyncio.run(main(lambda function, *args: function(*args)))
    with recorded() as (run, _):
        assert_same(asyncio.run(main(run)), expected)


def test_threads_share_the_arrays_of_a_frame() -> None:
    def function(given: Any) -> Any:
        x = small(given)
        with ThreadPoolExecutor(8) as pool:
            tops = list(pool.map(lambda _: x.ravel()[:3], range(8)))
            turned = list(pool.map(lambda code: cv2.flip(x, code), [-1, 0, 1] * 3))
        assert len({top.__array_interface__["data"] for top in tops}) == 1
        return [np.asarray(each) for each in turned]

    expected = function(image())
    with recorded() as (run, migrator):
        assert_same(run(function, image()), expected)
        assert row(migrator).migrated == 1


def test_frames_in_frames_and_recursion() -> None:
    def function(given: Any, deep: int) -> Any:
        x = cv2.flip(given, 1)
        return cv2.add(x, frames.frame(function, x, deep - 1)) if deep else x

    expected = function(image(), 4)
    with recorded() as (run, migrator):
        assert_same(run(function, image(), 4), expected)
        assert {each.tally.row().fell_back for each in migrator._sites.values() if each} == {0}


def test_buffers_that_are_used_again() -> None:
    buffer = image()

    def function(first: Any, second: Any) -> Any:
        one = cv2.flip(buffer, 1)
        buffer[:] = 9
        first[1] = 3
        two = cv2.flip(second, 0)  # the same array
        second[2] = 4
        return one, two, cv2.flip(first, -1)

    def ran(run: Any) -> Any:
        buffer[:] = image()
        given = image(1)
        return run(function, given, given), given

    expected = ran(lambda call, *args: call(*args))
    with recorded() as (run, _):
        assert_same(ran(run), expected)


def test_opencvs_objects() -> None:
    made_before = cv2.createCLAHE(3.0, (4, 4))

    def function(given: Any) -> Any:
        grey = cv2.cvtColor(given, cv2.COLOR_BGR2GRAY)
        return made_before.apply(grey), cv2.createCLAHE(2.0).apply(grey)

    expected = function(image())
    with recorded() as (run, migrator):
        assert_same(run(function, image()), expected)
        assert row(migrator).fell_back == 0
    assert type(cv2.CLAHE.apply) is type(cv2.CLAHE.getClipLimit)


# --- errors and frames that run anew --------------------------------------------------------------


@pytest.mark.parametrize("kind", [KeyError, IndexError, ValueError, RuntimeError, OSError])
def test_errors_of_the_program(kind: Any) -> None:
    def function(given: Any) -> Any:
        small(given)
        raise kind("own")

    with recorded() as (run, migrator):
        for _ in range(5):
            with pytest.raises(kind, match="own") as caught:
                run(function, image())
            assert caught.value.__cause__ is None
            assert caught.value.__context__ is None
        assert run(small, image()).shape == (6, 8, 3)
        assert row(migrator).migrated >= 1


def test_opencvs_own_errors() -> None:
    def function(given: Any) -> Any:
        return cv2.resize(small(given), (0, 0))

    with pytest.raises(cv2.error) as expected:
        function(image())
    with recorded() as (run, _), pytest.raises(cv2.error) as found:
        run(function, image())
    assert str(found.value) == str(expected.value)
    assert found.value.__context__ is None


def test_errors_that_the_program_catches() -> None:
    def function(given: Any) -> Any:
        x = small(given)
        try:
            return memoryview(x).nbytes
        except TypeError:
            return -1

    with recorded() as (run, _):
        # It is not a TypeError where it is an array of numpy: then this is found out by nobody.
        assert run(function, image()) in {-1, 144}


class Program:
    """Has state of all kinds, and fails once it has changed all of it."""

    def __init__(self) -> None:
        self.count = 0
        self.log: list[int] = []
        self.sums = np.zeros(3)
        self.seen: dict[str, int] = {}
        self.random = random.Random(1)
        self.generator = np.random.default_rng(2)
        self.old = np.random.RandomState(3)
        self.tool = {"inner": [random.Random(4)]}

    def run(self, given: Any, rows: list[int]) -> Any:
        x = small(given)
        given[0] = 5
        self.count += 1
        self.log.append(self.count)
        rows.append(self.count)
        self.sums += given.mean(axis=(0, 1))
        self.seen["calls"] = self.seen.get("calls", 0) + 1
        self.previous = x
        drawn = [
            *(random.random(), np.random.rand(), np.random.randn(), torch.rand(1).item()),
            *(self.random.random(), self.generator.random(), self.old.rand()),
            self.tool["inner"][0].random(),
        ]
        refuse(x)
        return x, drawn


def test_a_frame_runs_anew_as_if_it_had_not_run() -> None:
    def ran(run: Any) -> Any:
        random.seed(9)
        np.random.seed(9)
        torch.manual_seed(9)
        program, given, rows = Program(), image(), []
        results = [run(program.run, given, rows) for _ in range(2)]
        state = [program.count, program.log, program.sums, program.seen, program.previous]
        return results, given, rows, state

    expected = ran(lambda function, *args: function(*args))
    with recorded() as (run, migrator):
        assert_same(ran(run), expected)
        assert row(migrator).fell_back == 2
    assert "ran anew" in str(row(migrator).reasons)


def test_opencvs_random_numbers_in_a_frame_that_runs_anew() -> None:
    def function(given: Any) -> Any:
        x = small(given)
        noise = np.zeros((4, 4), np.float32)
        cv2.randn(noise, 0, 1)
        order = np.arange(9, dtype=np.int32)[:, None]
        cv2.randShuffle(order)
        more = cv2.randu(np.zeros((2, 2), np.uint8), 0, 255)
        refuse(x)
        return x, noise, order, more

    cv2.setRNGSeed(5)
    expected = function(image()), function(image())
    with recorded() as (run, migrator):
        cv2.setRNGSeed(5)
        assert_same((run(function, image()), run(function, image())), expected)
        assert row(migrator).fell_back == 2


def test_a_frame_that_cannot_be_recorded_is_not_for_long() -> None:
    calls = []

    def function(given: Any) -> Any:
        calls.append(1)
        refuse(small(given))

    with recorded() as (run, migrator):
        for _ in range(6):
            run(function, image())
        assert "switched off after 3 faults" in str(row(migrator).reasons)
    assert len(calls) == 3 * 2 + 3


def test_strict() -> None:
    with recorded(strict=True) as (run, _), pytest.raises(TypeError, match="refused"):
        run(lambda given: refuse(small(given)), image())


# --- faults ---------------------------------------------------------------------------------------


def _three(given: Any) -> Any:
    x = small(given)
    first = x.sum()
    y = cv2.flip(x, 1)
    return first, y, cv2.GaussianBlur(y, (3, 3), 0)


@pytest.mark.parametrize("kind", ["gone", "memory", "other"])
@pytest.mark.parametrize("nth", [1, 2, 3])
def test_a_device_that_fails(kind: str, nth: int, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = _three(image())
    step, count = executing.one, []

    def one(device: Any, node: Any) -> Any:
        count.append(1)
        if len(count) == nth:
            raise {
                "gone": DeviceGoneError(device.name, "it fell off"),
                "memory": OutOfMemoryError(device.name, "too much"),
                "other": RuntimeError("strange"),
            }[kind]
        return step(device, node)

    monkeypatch.setattr(executing, "one", one)
    with recorded() as (run, migrator):
        assert_same(run(_three, image()), expected)
        assert_same(run(_three, image()), expected)
        assert row(migrator).reasons


def test_a_wrong_kernel_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = _three(image())
    step = executing.one
    monkeypatch.setattr(executing, "one", lambda device, node: step(device, node) + 1)
    with recorded(verify=1) as (run, migrator):
        for _ in range(3):
            assert_same(run(_three, image()), expected)
        assert "not exact" in str(row(migrator).reasons)
    with recorded(verify=1, strict=True) as (run, _), pytest.raises(RefusedCallError):
        run(_three, image())


def test_verified_frames_go_on() -> None:
    expected = _three(image())
    with recorded(verify=2) as (run, migrator):
        for _ in range(4):
            assert_same(run(_three, image()), expected)
        assert row(migrator).fell_back == 0


# --- plans ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "more",
    [
        {"cv2.flip": "cpu"},
        {f"{KEY}/cv2.flip": "cpu"},
        {f"{KEY}/cv2.flip": {"device": "cpu", "kernel": "torch"}},
        {f"{KEY}/cv2.flip": {"device": "cpu", "kernel": "torch", "min_pixels": 10**6}},
    ],
)
def test_a_nearer_key_inside(more: dict[str, Any]) -> None:
    expected = _three(image())
    with recorded({KEY: SCOPED} | more) as (run, migrator):
        assert_same(run(_three, image()), expected)
        assert row(migrator).migrated == 1


def test_small_images_are_left_alone() -> None:
    expected = _three(image())
    with recorded({KEY: SCOPED | {"min_pixels": 100}}) as (run, migrator):
        assert_same(run(_three, image()), expected)
        assert row(migrator, "resize").migrated == 1
        assert row(migrator, "flip").migrated == 0


def test_two_migrators() -> None:
    expected = _three(image())
    plain = {"cv2.flip": {"device": "cpu", "kernel": "torch"}}
    with PipelineMigrator(plain) as other, recorded() as (run, migrator):
        assert_same(run(_three, image()), expected)
        assert row(migrator).migrated == 1
    with recorded() as (run, migrator), PipelineMigrator(plain) as other:
        assert_same(run(_three, image()), expected)
        assert row(other, "flip").calls == 1


def test_switched_off_by_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DEVICECORE_MIGRATE", "off")
    with recorded() as (run, migrator):
        assert_same(run(_three, image()), _three(image()))
        assert not migrator._sites


def test_deactivated_while_a_frame_runs() -> None:
    expected = _three(image())
    migrator = PipelineMigrator({KEY: SCOPED}).activate()

    def function(given: Any) -> Any:
        x = small(given)
        migrator.deactivate()
        y = cv2.flip(x, 1)
        return x.sum(), y, cv2.GaussianBlur(y, (3, 3), 0)

    assert_same(frames.frame(function, image()), expected)


def test_frames_of_several_threads_at_once() -> None:
    expected = [_three(image(seed)) for seed in range(4)]
    with recorded() as (run, migrator), ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda seed: run(_three, image(seed % 4)), range(40)))
    for place, each in enumerate(found):
        assert_same(each, expected[place % 4])
    assert row(migrator).migrated == 40


def test_frames_leave_nothing_behind() -> None:
    made: list[Any] = []

    def function(given: Any) -> Any:
        x = small(given)
        if type(x) is DeviceArray:
            made.append(weakref.ref(x))
        return cv2.flip(x, 1)

    gc.disable()
    try:
        with recorded() as (run, _):
            for _ in range(100):
                run(function, image())
            assert len(made) == 100
            assert not any(each() for each in made)
            assert threading.active_count() < 50
    finally:
        gc.enable()
