"""Recorded frames that fail: whose error it is, and what a frame that runs anew does twice."""

# ruff: noqa: NPY002 - programs draw from numpy's old generator

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
cv2 = pytest.importorskip("cv2")

from tests.migrate.recording.frames import image, recorded, refuse, row, small  # noqa: E402
from tests.migrate.sites import assert_same  # noqa: E402

pytestmark = pytest.mark.usefixtures("no_trace")


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
        program, given = Program(), image()
        rows: list[Any] = []
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
