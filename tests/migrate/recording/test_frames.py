"""Recorded frames: what the caller gets, and what stays."""

from __future__ import annotations

import asyncio
import collections
import dataclasses
import queue
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple, Self

import numpy as np
import pytest

torch = pytest.importorskip("torch")
cv2 = pytest.importorskip("cv2")

from tests.migrate.recording import frames  # noqa: E402
from tests.migrate.recording.frames import image, recorded, row, small  # noqa: E402
from tests.migrate.sites import assert_same  # noqa: E402

pytestmark = pytest.mark.usefixtures("no_trace")


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


class Tagged(tuple[Any, ...]):  # noqa: SLOT001 - it has attributes
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
        holder, sample = Holder(), {"image": None}
        rows: list[Any] = []
        run(holder.run, image(), sample, rows=rows)
        return [holder.last, sample["image"], rows[0]]

    expected = ran(lambda function, *args, **kwargs: function(*args, **kwargs))
    with recorded() as (run, migrator):
        for _ in range(3):
            found = ran(run)
            assert_same(found, expected)
            assert np.shares_memory(found[0], found[1])
        assert row(migrator).migrated == 3


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


def _are(found: Any, *places: Any) -> Any:
    """Return whether what was returned are the places, beside what they hold."""
    several = found if isinstance(found, (tuple, list)) else (found,)
    return [[any(each is place for each in several) for place in places], *places]


def _planes(y: Any) -> list[Any]:
    return [y[..., place].copy() for place in range(3)]


def _into(y: Any, call: Any, count: int = 1) -> Any:
    places = [y.copy() for _ in range(count)]
    return _are(call(y, *places), *places)


def _into_list(y: Any, places: list[Any]) -> Any:
    return _are(cv2.split(y, places), *places)


PLACES: dict[str, Any] = {
    "in place": lambda y: _are(cv2.threshold(y, 100, 255, 0, y), y),
    "in place, by name": lambda y: _are(cv2.threshold(y, 100, 255, 0, dst=y), y),
    "a copy": lambda y: _into(y, lambda x, z: cv2.threshold(x, 100, 255, 0, dst=z)),
    "one result": lambda y: _into(y, lambda x, z: cv2.flip(x, 1, z)),
    "a list": lambda y: _into(y, lambda x, z: cv2.mixChannels([x], [z], [0, 1])),
    "a list of several": lambda y: _into_list(y, _planes(y)),
    "no image": lambda y: _are(
        cv2.meanStdDev(y, mean := np.zeros((3, 1)), more := np.zeros((3, 1))), mean, more
    ),
    "another place in the tuple": lambda y: _are(
        cv2.floodFill(y, np.zeros((y.shape[0] + 2, y.shape[1] + 2), np.uint8), (3, 3), (1, 2, 3)),
        y,
    ),
    "one of numpy": lambda y: _into(y, lambda x, z: np.take(x, np.arange(len(x)), 0, z)),
    "several of numpy": lambda y: _into(y, lambda x, a, b: np.divmod(x, 3, out=(a, b)), 2),
    "as it is": lambda y: _are(np.atleast_3d(y), y),
    "all as they are": lambda y: _are(np.broadcast_arrays(y, y.copy())[1], y),
}


@pytest.mark.parametrize("name", PLACES)
def test_what_is_written_into_is_what_is_returned(name: str) -> None:
    def function(x: Any) -> Any:
        return PLACES[name](cv2.flip(x, 1))

    expected = function(image())
    with recorded():
        assert_same(frames.frame(function, image()), expected)
