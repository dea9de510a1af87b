"""What `DeviceLoader.report` says: each cause has its own words, also those of workers."""

from __future__ import annotations

import inspect
import multiprocessing
import os
import signal
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
cv2 = pytest.importorskip("cv2")

from devicecore.errors import RefusedCallError  # noqa: E402 - after torch
from devicecore.ledger import default_ledger  # noqa: E402 - after torch
from devicecore.migrate import DeviceLoader  # noqa: E402
from devicecore.migrate.loader import batches  # noqa: E402
from devicecore.migrate.recording import execution  # noqa: E402
from tests.cv.differential import IS_OLD  # noqa: E402 - it imports cv2
from tests.migrate.loader import pictures  # noqa: E402
from tests.migrate.loader.batches import PLAN, STARTS, TORCH, same  # noqa: E402

pytestmark = [
    pytest.mark.usefixtures("no_trace"),
    pytest.mark.skipif(IS_OLD, reason="of this OpenCV few functions have kernels"),
]
WORKERS = pytest.mark.parametrize("workers", [0, 2])


class OwnArray(np.ndarray[Any, Any]):
    """An array of the program's own class."""


def with_destination(image: Any) -> Any:
    return cv2.resize(image, (16, 16), np.zeros((16, 16, 3), np.uint8))


CALLS: dict[str, tuple[Any, str]] = {
    "cubic": (
        lambda image: cv2.resize(image, (16, 16), interpolation=cv2.INTER_CUBIC),
        "as the plan wants: it is only lsb1 for interpolation=INTER_CUBIC",
    ),
    "type": (lambda image: cv2.resize(image.astype(np.int16), (9, 9)), "no kernel for src=int16"),
    "promise": (
        lambda image: cv2.blur(image.astype(np.float32), (5, 5)),
        "no kernel gives exact values, as the plan wants: it is only tolerance for src=float32 of",
    ),
    "class": (lambda image: cv2.flip(image.view(OwnArray), 1), "OwnArray"),
    "destination": (with_destination, "dst"),
    "no rule": (lambda image: cv2.integral(image[:40]), "record no call of this function"),
    "one channel": (lambda image: cv2.flip(image[..., :1].copy(), 1), "one channel"),
    "no image": (lambda _: cv2.flip(np.zeros(4, np.uint8), 1), "two or three axes"),
}
TRIED = ["resize", "medianBlur", "blur", "flip", "integral"]


class Called(pictures.Pictures):
    """With a call that nobody records, and one that is."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        self.kind = kind

    def prepare(self, image: Any) -> Any:
        image = np.ascontiguousarray(image[:40])
        found = CALLS[self.kind][0](image)
        return np.asarray(found), cv2.cvtColor(image, cv2.COLOR_BGR2RGB)


@pytest.mark.parametrize("kind", CALLS)
def test_a_call_that_is_not_recorded_says_which_argument_it_is_about(kind: str) -> None:
    plan = {f"cv2.{name}": TORCH for name in (*TRIED, "cvtColor")}
    dataset = Called(kind)
    expected = list(torch.utils.data.DataLoader(dataset, batch_size=4))
    loader = DeviceLoader(dataset, plan, batch_size=4)
    same(list(loader), expected)
    rows = {row.path: row for row in loader.report().rows}
    assert rows["cv2:cvtColor"].migrated == 7
    (reason,) = {why for row in rows.values() for why in row.reasons}
    assert CALLS[kind][1] in reason


class Broken(pictures.Pictures):
    """With an error of the program's own in its third sample, of some kind."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        self.kind = kind

    def __getitem__(self, index: int) -> Any:
        image = self.prepare(self.image(index))
        if index == 2 and self.kind == "key":
            raise KeyError(index)
        if index == 2 and self.kind == "opencv":
            cv2.resize(np.zeros((0, 4), np.uint8), (4, 4))
        if index == 2 and self.kind == "killed" and torch.utils.data.get_worker_info() is not None:
            os.kill(os.getpid(), signal.SIGKILL)
        if self.kind == "sizes":
            image = cv2.resize(self.image(index), (16, 16 + index % 3))
        if self.kind == "types" and index == 2:
            image = image.astype(np.float64)
        return image, np.zeros(index if self.kind == "others" else 1)


def outcome(make: Any, dataset: Any, **options: Any) -> tuple[Any, Any, list[Any]]:
    """Return a loader, the error that it raises, and what it gives before."""
    loader = make(dataset, batch_size=2, **options)
    found = []
    try:
        for batch in loader:
            found.append(batch)  # noqa: PERF402 - those before the error
    except Exception as error:  # noqa: BLE001 - any, which is compared
        return loader, error, found
    return loader, None, found


ERRORS = {
    "key": ("samples", "the dataset raised KeyError in __getitem__ (test_loader_reports.py:"),
    "opencv": ("samples", "the dataset raised error in __getitem__ (test_loader_reports.py:"),
    "sizes": ("collation", "torch's default_collate raised RuntimeError"),
    "others": ("collation", "torch's default_collate raised RuntimeError"),
}


def first_line(error: Any) -> str:
    return str(error).splitlines()[0]


def last_line(error: Any) -> str:
    return str(error).strip().splitlines()[-1]


@WORKERS
@pytest.mark.parametrize("kind", ERRORS)
def test_errors_of_the_program(kind: str, workers: int) -> None:
    dataset = Broken(kind)
    plan = {**PLAN, "cv2.resize": TORCH}
    _, expected, before = outcome(torch.utils.data.DataLoader, dataset, num_workers=workers)
    loader, error, found = outcome(DeviceLoader, dataset, plan=plan, num_workers=workers)
    assert type(error) is type(expected)
    assert first_line(error) == first_line(expected)
    assert last_line(error) == last_line(expected)
    same(found, before)
    path, words = ERRORS[kind]
    rows = {row.path: row for row in loader.report().rows}
    failed = {why: count for why, count in rows[path].reasons.items() if words in why}
    assert sum(failed.values()) >= 1, rows[path].reasons
    # No device is to blame for it.
    assert "DeviceLoader" not in rows or not rows["DeviceLoader"].reasons


@pytest.mark.parametrize("start", STARTS)
def test_errors_in_workers_of_any_kind(start: str) -> None:
    options: Any = {"num_workers": 1, "multiprocessing_context": start}
    loader, error, _ = outcome(DeviceLoader, Broken("key"), plan=PLAN, **options)
    assert isinstance(error, KeyError)
    rows = {row.path: row for row in loader.report().rows}
    reasons = [why for why in rows["samples"].reasons if ERRORS["key"][1] in why]
    assert [rows["samples"].reasons[why] for why in reasons] == [1]
    other = DeviceLoader(pictures.Pictures(), PLAN, batch_size=7)
    list(other)  # with the same plan
    assert not any(row.reasons for row in other.report().rows)


@WORKERS
def test_types_that_differ_are_what_torch_makes_of_them(workers: int) -> None:
    _, error, expected = outcome(torch.utils.data.DataLoader, Broken("types"), num_workers=workers)
    _, own_error, found = outcome(DeviceLoader, Broken("types"), plan=PLAN, num_workers=workers)
    assert type(own_error) is type(error)
    same(found, expected)


@WORKERS
def test_a_collation_of_the_program_that_fails(workers: int) -> None:
    loader, error, _ = outcome(
        DeviceLoader, pictures.Pictures(), plan=PLAN, num_workers=workers, collate_fn=failing
    )
    assert isinstance(error, ZeroDivisionError)
    (reason,) = {row.path: row.reasons for row in loader.report().rows}["collation"]
    assert f"{__name__}:failing raised ZeroDivisionError in failing" in reason


def failing(samples: list[Any]) -> Any:
    return len(samples) // 0


def test_a_worker_that_is_killed() -> None:
    loader, error, _ = outcome(DeviceLoader, Broken("killed"), plan=PLAN, num_workers=2)
    assert "DataLoader worker" in str(error)
    (reason,) = {row.path: row.reasons for row in loader.report().rows}["workers"]
    assert reason.startswith("worker 1 has died: DataLoader worker (pid")


@WORKERS
def test_samples_that_cannot_be_recorded(workers: int) -> None:
    class Refused(pictures.Pictures):
        def prepare(self, image: Any) -> Any:
            memoryview(found := super().prepare(image))
            return found

    loader = DeviceLoader(Refused(), PLAN, batch_size=1, num_workers=workers)
    for _ in loader:
        pass
    reasons = {row.path: row.reasons for row in loader.report().rows}["samples"]
    place = "TypeError in prepare (test_loader_reports.py:"
    assert any(why.startswith(place) for why in reasons)
    assert any(f"those before could not be recorded: {place}" in why for why in reasons)


def test_calls_of_other_threads_are_counted() -> None:
    class Threads(pictures.Pictures):
        def prepare(self, image: Any) -> Any:
            thread = threading.Thread(target=cv2.flip, args=(image, 1))
            thread.start()
            thread.join()
            return cv2.resize(image, (8, 8))

    loader = DeviceLoader(Threads(), {"cv2.flip": TORCH, "cv2.resize": TORCH}, batch_size=7)
    list(loader)
    cv2.flip(np.zeros((4, 4), np.uint8), 1)
    rows = {row.path: row for row in loader.report().rows}
    assert (rows["cv2:flip"].calls, rows["cv2:flip"].migrated) == (7, 0)
    assert "another thread" in next(iter(rows["cv2:flip"].reasons))


def test_a_device_that_takes_no_tensors(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any, **__: Any) -> Any:
        msg = "the device is lost"
        raise RuntimeError(msg)

    monkeypatch.setattr(execution, "compute_frames", fail)
    monkeypatch.setattr(batches, "_by_originals", lambda *_, **__: [Stuck()])
    loader = DeviceLoader(pictures.Pictures(), PLAN, batch_size=7)
    list(loader)
    (reason,) = loader.report().rows[0].reasons
    assert "so they stay on the host: RuntimeError: it takes none" in reason
    assert "the device is lost" in reason
    assert any("stay on the host" in move.reason for move in default_ledger().moves())


class Stuck:
    """A fake of a tensor whose device is lost."""

    dtype = torch.uint8

    def to(self, _: Any) -> Any:
        msg = "it takes none"
        raise RuntimeError(msg)


@pytest.mark.filterwarnings("ignore:.*no package 'nothing_here'")
@WORKERS
def test_keys_that_were_for_no_call(workers: int) -> None:
    plan = {**PLAN, "cv2.Canny": TORCH, "nothing_here.resize": TORCH}
    loader = DeviceLoader(pictures.Pictures(), plan, batch_size=3, num_workers=workers)
    assert not loader.report().unmatched  # nothing was loaded yet
    list(loader)
    keys = [text.split(":")[0] for text in loader.report().unmatched]
    assert len(keys) == 3, loader.report().unmatched
    assert "Canny" in str(keys)
    assert "no module 'nothing_here' was imported" in str(loader.report())


class Elsewhere(pictures.Pictures):
    """With its calls in another thread, in another process, or nowhere."""

    def __init__(self, where: str) -> None:
        super().__init__()
        self.where = where

    def __getitem__(self, index: int) -> Any:
        image = self.image(index)
        if self.where == "thread":
            with ThreadPoolExecutor(1) as pool:
                image = pool.submit(cv2.flip, image, 1).result()
        if self.where == "process":
            with multiprocessing.get_context("fork").Pool(1) as processes:
                image = processes.apply(cv2.flip, (image, 1))
        return np.array(image[:8, :8])


HERE = f"{__name__}:Elsewhere/__getitem__"
THREAD = "cv2:flip: another thread than the one that loads the sample has called it"


@pytest.mark.parametrize(
    ("where", "key", "said"),
    [
        ("thread", HERE, THREAD),
        ("thread", f"{HERE}/cv2.flip", THREAD),
        ("thread", "cv2.flip", THREAD),
        ("process", HERE, f"{HERE} was called, and no function inside of it"),
        ("process", "cv2.flip", "nothing of cv2.flip was called where samples are loaded; proc"),
        ("nowhere", HERE, f"{HERE} was called, and no function inside of it"),
    ],
)
@pytest.mark.parametrize("workers", [0, 1])
def test_calls_that_are_not_made_where_samples_are_loaded(
    where: str, key: str, said: str, workers: int, caplog: pytest.LogCaptureFixture
) -> None:
    if where == "process" and workers:
        pytest.skip("workers of torch's loader may have no children")
    loader = DeviceLoader(Elsewhere(where), {key: TORCH}, batch_size=4, num_workers=workers)
    assert len(list(loader)) == 2
    (text,) = (each for each in caplog.messages if "nothing to do" in each)
    assert f"({said}" in text
    loader = DeviceLoader(Elsewhere(where), {key: TORCH}, batch_size=4, strict=True)
    with pytest.raises(RefusedCallError) as caught:
        list(loader)
    assert said in str(caught.value)
    assert "@kernel" not in str(caught.value)
    assert "in the thread that loads the sample" in str(caught.value)


def test_calls_of_threads_that_the_plan_is_not_for(caplog: pytest.LogCaptureFixture) -> None:
    loader = DeviceLoader(Elsewhere("thread"), {"cv2.blur": TORCH}, batch_size=4)
    list(loader)
    assert [row.path for row in loader.report().rows] == ["samples"]


@pytest.mark.parametrize("workers", [0, 1])
def test_its_warnings_name_the_line_of_the_loop(workers: int) -> None:
    loader = DeviceLoader(Elsewhere(""), {"cvv2.f": TORCH}, batch_size=7, num_workers=workers)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        line = inspect.currentframe().f_lineno + 1  # type: ignore[union-attr]
        for _ in loader:
            pass
    assert [(each.filename, each.lineno) for each in caught] == [(__file__, line)]
