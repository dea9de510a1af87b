"""Recorded frames where devices fail, kernels are wrong, and plans say more."""

from __future__ import annotations

import gc
import threading
import weakref
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

torch = pytest.importorskip("torch")
cv2 = pytest.importorskip("cv2")

from devicecore.errors import DeviceGoneError, OutOfMemoryError, RefusedCallError  # noqa: E402
from devicecore.migrate import PipelineMigrator  # noqa: E402
from devicecore.migrate.recording import execution  # noqa: E402
from devicecore.migrate.recording.lazy_array import LazyArray  # noqa: E402
from tests.migrate.recording import frames  # noqa: E402
from tests.migrate.recording.frames import KEY, SCOPED, image, recorded, row, small  # noqa: E402
from tests.migrate.sites import assert_same  # noqa: E402

pytestmark = pytest.mark.usefixtures("no_trace")


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
    step, count = execution.compute_node, []

    def one(device: Any, node: Any, **how: Any) -> Any:
        count.append(1)
        if len(count) == nth:
            raise {
                "gone": DeviceGoneError(device.name, "it fell off"),
                "memory": OutOfMemoryError(device.name, "too much"),
                "other": RuntimeError("strange"),
            }[kind]
        return step(device, node, **how)

    monkeypatch.setattr(execution, "compute_node", one)
    with recorded() as (run, migrator):
        assert_same(run(_three, image()), expected)
        assert_same(run(_three, image()), expected)
        assert row(migrator).reasons


def test_a_wrong_kernel_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = _three(image())
    step = execution.compute_node
    monkeypatch.setattr(execution, "compute_node", lambda *args, **how: step(*args, **how) + 1)
    with recorded(verify=1) as (run, migrator):
        for _ in range(3):
            assert_same(run(_three, image()), expected)
        assert "not exact" in str(row(migrator).reasons)
    with recorded(verify=1, strict=True) as (run, _), pytest.raises(RefusedCallError):
        run(_three, image())


def test_calls_without_a_kernel() -> None:
    def cubic(given: Any) -> Any:
        return cv2.flip(cv2.resize(given, (8, 6), interpolation=cv2.INTER_CUBIC), 1)

    expected = cubic(image())
    with recorded() as (run, migrator):
        assert_same(run(cubic, image()), expected)
        assert row(migrator, "cv2:resize").fell_back == 1
        assert row(migrator, "cv2:flip").migrated == 1
    with recorded(strict=True) as (run, _), pytest.raises(RefusedCallError, match="resize"):
        run(cubic, image())


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
        if type(x) is LazyArray:
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
