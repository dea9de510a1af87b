"""Devices that fail in the midst of a program: nothing is lost, and the originals come back.

All of these devices are fakes, which compute in the host's memory.
"""

from __future__ import annotations

import importlib
import logging
import threading
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
cv2 = pytest.importorskip("cv2")

from devicecore.errors import FallbackForbiddenError  # noqa: E402 - after cv2
from devicecore.ledger import default_ledger  # noqa: E402
from devicecore.migrate import (  # noqa: E402
    MigrationStrategy,
    PipelineMigrator,
    StrategyRegistry,
    migrator,
)
from devicecore.scope import device_scope  # noqa: E402
from tests.migrate.sites import By, FakeGpu  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

GPU = {"device": "gpu", "kernel": "torch"}
IMAGE = np.random.default_rng(2).integers(0, 256, (12, 16, 3), dtype=np.uint8)


@pytest.fixture(scope="module", autouse=True)
def _scopes_are_ready() -> None:
    with device_scope("cpu"):  # the first one looks at imports from then on
        pass


@pytest.fixture(autouse=True)
def _nothing_is_left(no_trace: None) -> Iterator[None]:
    del no_trace  # it looks afterwards
    default_ledger().clear()
    yield
    default_ledger().clear()


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> FakeGpu:
    """Return the fake GPU that the plans here mean."""
    made = FakeGpu()
    found = SimpleNamespace(device=made)
    monkeypatch.setattr(migrator, "resolve_device", lambda *_, **__: found)
    return made


def pictures(count: int) -> list[Any]:
    """Return what a program makes of images, by two functions of OpenCV's."""
    return [cv2.flip(cv2.blur(IMAGE + np.uint8(turn), (3, 3)), 1) for turn in range(count)]


PLAN = {"cv2.flip": GPU, "cv2.blur": GPU}


def same(found: list[Any], expected: list[Any]) -> bool:
    return len(found) == len(expected) and all(map(np.array_equal, found, expected))


@pytest.mark.parametrize("lost_at", [1, 2, 5, 20])
def test_a_gpu_that_is_lost_at_the_nth_call(
    lost_at: int, gpu: FakeGpu, caplog: pytest.LogCaptureFixture
) -> None:
    expected = pictures(10)
    gpu.lost_at = lost_at
    with caplog.at_level(logging.WARNING, "devicecore"), PipelineMigrator(PLAN) as made:
        assert same(pictures(10), expected)
    rows = made.report().rows
    assert sum(row.calls for row in rows) == 20
    assert sum(row.migrated for row in rows) == lost_at - 1
    assert sum(row.fell_back for row in rows) == default_ledger().total == 21 - lost_at
    # Of each path once that the call failed, and once that the GPU is gone.
    assert len(caplog.records) == len(default_ledger().moves()) <= 3


def test_memory_that_is_full_now_and_then(gpu: FakeGpu) -> None:
    expected = pictures(10)
    gpu.full_at = (2, 3, 7, 8)
    with PipelineMigrator(PLAN) as made:
        assert same(pictures(10), expected)
    rows = made.report().rows
    assert sum(row.migrated for row in rows) == 16
    assert not any("switched off" in reason for row in rows for reason in row.reasons)


def test_memory_that_stays_full(gpu: FakeGpu) -> None:
    expected = pictures(10)
    gpu.full_at = tuple(range(1, 99))
    with PipelineMigrator(PLAN) as made:
        assert same(pictures(10), expected)
    assert gpu.calls == 6  # three tries of each path
    assert all(row.fell_back == 10 for row in made.report().rows)


def test_no_gpu_is_left_where_the_ledger_forbids_the_host(gpu: FakeGpu) -> None:
    gpu.lost_at = 2
    with PipelineMigrator(PLAN), default_ledger().limited_to(0):
        with pytest.raises(FallbackForbiddenError, match="cv2:flip would move from"):
            pictures(1)
        assert gpu.calls == 2


@pytest.mark.parametrize(
    "wrong",
    [
        lambda image, code: cv2.flip(image, code).astype(np.float32),
        lambda image, code: cv2.flip(image, -code),
        lambda image, code: cv2.flip(image, code)[:-1],
    ],
    ids=["dtype", "values", "shape"],
)
def test_wrong_kernels_are_found_out(wrong: Callable[..., Any], gpu: FakeGpu) -> None:
    expected = pictures(10)
    registry = StrategyRegistry()
    registry.register("cv2.flip", MigrationStrategy(wrong))
    with PipelineMigrator({"cv2.flip": GPU}, registry, verify=4) as made:
        found = pictures(10)
    assert same(found[3:], expected[3:])
    assert gpu.calls == 4
    (row,) = made.report().rows
    assert (row.migrated, row.fell_back) == (3, 7)


def test_an_error_of_the_program_inside_of_a_frame_on_a_gpu(
    gpu: FakeGpu, write: Callable[..., None]
) -> None:
    del gpu
    write(
        made_app="import cv2\ncount = 0\n"
        "def prepare(x):\n    global count\n    count += 1\n    return cv2.flip(x, 1)[x.shape[0]]\n"
    )
    app: Any = importlib.import_module("made_app")
    with PipelineMigrator({"made_app.prepare": GPU}) as made:
        with pytest.raises(IndexError) as caught:
            app.prepare(IMAGE)
        assert app.count == 1
    assert caught.value.__cause__ is caught.value.__context__ is None
    assert [row.fell_back for row in made.report().rows] == [0, 0]


def test_a_gpu_that_is_lost_inside_of_a_frame(gpu: FakeGpu, write: Callable[..., None]) -> None:
    write(made_app="import cv2\ndef prepare(x):\n    return cv2.flip(cv2.blur(x, (3, 3)), 1)\n")
    app: Any = importlib.import_module("made_app")
    expected = app.prepare(IMAGE)
    gpu.lost_at = 2
    with PipelineMigrator({"made_app.prepare": GPU}) as made:
        assert np.array_equal(app.prepare(IMAGE), expected)
        assert np.array_equal(app.prepare(IMAGE), expected)
    rows = {row.path.rpartition(":")[2]: row for row in made.report().rows}
    assert (rows["blur"].migrated, rows["flip"].migrated) == (1, 0)
    assert (rows["prepare"].calls, rows["prepare"].migrated) == (2, 1)


def test_deactivation_while_a_call_is_on_the_gpu(gpu: FakeGpu) -> None:
    inside, go_on = threading.Event(), threading.Event()
    original, found = cv2.flip, []

    def slow(*_: Any) -> str:
        inside.set()
        assert go_on.wait(30)
        return "the GPU's"

    del gpu
    registry = StrategyRegistry()
    registry.register("cv2.flip", By(slow))
    made = PipelineMigrator({"cv2.flip": GPU}, registry).activate()
    thread = threading.Thread(target=lambda: found.append(cv2.flip(IMAGE, 1)))
    thread.start()
    assert inside.wait(30)
    made.deactivate()
    assert cv2.flip is original
    go_on.set()
    thread.join()
    assert found == ["the GPU's"]
    assert made.report().rows[0].migrated == 1


def test_a_module_that_is_reloaded_while_its_function_runs(
    gpu: FakeGpu, write: Callable[..., None]
) -> None:
    del gpu
    write(
        made_app="import cv2, importlib, sys\n"
        "def prepare(x):\n    importlib.reload(sys.modules[__name__])\n    return cv2.flip(x, 1)\n"
    )
    app: Any = importlib.import_module("made_app")
    with PipelineMigrator({"made_app.prepare": GPU}) as made:
        for _ in range(2):
            assert np.array_equal(app.prepare(IMAGE), IMAGE[:, ::-1])
    assert not hasattr(app.prepare, "__wrapped__")
    assert sum(row.migrated for row in made.report().rows) == 4
