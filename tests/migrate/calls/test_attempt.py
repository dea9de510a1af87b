"""Calls, recorded frames, samples and batches give up on a device by the same rules."""

from __future__ import annotations

import contextlib
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
cv2 = pytest.importorskip("cv2")

from devicecore.errors import RefusedCallError  # noqa: E402 - after torch
from devicecore.migrate.loader import batches as batches_module  # noqa: E402
from devicecore.migrate.loader.batches import Batches  # noqa: E402
from devicecore.migrate.loader.sample_recorder import SampleRecorder  # noqa: E402
from devicecore.migrate.plan.optimization_plan import OptimizationPlan  # noqa: E402
from devicecore.migrate.recording import execution  # noqa: E402
from devicecore.migrate.recording import frame as frame_module  # noqa: E402
from devicecore.migrate.recording.lazy_array import LazyArray  # noqa: E402
from devicecore.migrate.recording.nodes import compute_on_host, make_source  # noqa: E402
from devicecore.migrate.recording.snapshots import copy_array  # noqa: E402
from devicecore.runtime import host_cpu  # noqa: E402
from tests.migrate.recording.frames import image, recorded, small  # noqa: E402
from tests.migrate.sites import OwnError, site  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


PLAN = OptimizationPlan.load({"cv2.resize": {"device": "cpu", "kernel": "torch"}})


def broken() -> Exception:
    return RuntimeError("broken")


def refused() -> Exception:
    return RefusedCallError("f", "d")


class Turn:
    """What happens the next time: the device's error, the original's, or a wrong result.

    Each use tries once for a call of it, and it counts where the device was tried.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch, verify: int = 0) -> None:
        self.patch = monkeypatch
        self.verify = verify
        self.tried = 0
        self.fault: Callable[[], Exception] | None = None
        self.own = False
        self.off_by = 0
        self.run: Callable[[], Any] = lambda: None

    def device(self) -> int:
        self.tried += 1
        if self.fault is not None:
            raise self.fault()  # a new one, whose traceback nobody keeps
        return self.off_by

    def original(self) -> None:
        if self.own:
            raise OwnError

    def take(
        self, fault: Callable[[], Exception] | None = None, own: bool = False, off_by: int = 0
    ) -> bool:
        """Return whether the device was tried."""
        before, self.fault, self.own, self.off_by = self.tried, fault, own, off_by
        with contextlib.suppress(OwnError):
            self.run()
        return self.tried > before


@contextmanager
def calls(turn: Turn) -> Iterator[None]:
    one = site(lambda: 7 + turn.device(), verify=turn.verify)

    def original() -> int:
        turn.original()
        return 7

    def run() -> None:
        assert one.call(original, (), {}) == 7

    turn.run = run
    yield


@contextmanager
def frames(turn: Turn) -> Iterator[None]:
    right, given = execution.compute_node, image()
    expected = small(given)

    def original(node: Any) -> Any:
        turn.original()
        return compute_on_host(node)

    turn.patch.setattr(
        execution, "compute_node", lambda *args, **how: right(*args, **how) + turn.device()
    )
    turn.patch.setattr(frame_module, "compute_on_host", original)
    with recorded(verify=turn.verify) as (run, _):

        def once() -> None:
            assert np.array_equal(run(small, given), expected)

        turn.run = once
        yield


@contextmanager
def samples(turn: Turn) -> Iterator[None]:
    """Samples try to be recorded: what fails is the dataset's code that gets a lazy array."""
    given = image()
    expected = small(given)

    def load(_: int) -> Any:
        found = small(given)
        if type(found) is LazyArray:
            turn.device()
        else:
            turn.original()
        return found

    with SampleRecorder(PLAN, None, copy_array) as recorder:

        def run() -> None:
            found = recorder.sample(load, 0, repeats=True)
            assert np.array_equal(np.asarray(found), expected)
            recorder.find_kept(load, found, is_recorded=False)
            recorder.end_batch()

        turn.run = run
        yield


@contextmanager
def batches(turn: Turn) -> Iterator[None]:
    given = image()
    one = Batches(host_cpu(), PLAN, is_strict=False, verify=turn.verify)
    right, by_originals = execution.compute_frames, batches_module._by_originals

    def computed(*args: Any, **how: Any) -> Any:
        wrong = turn.device()
        found = right(*args, **how)
        return [(members, [each + wrong for each in columns]) for members, columns in found]

    def original(*args: Any, **how: Any) -> Any:
        turn.original()
        return by_originals(*args, **how)

    turn.patch.setattr(execution, "compute_frames", computed)
    turn.patch.setattr(batches_module, "_by_originals", original)

    def run() -> None:
        (found,) = one.computed([[make_source(given)]], together=True)
        assert torch.equal(found, torch.from_numpy(given)[None])

    turn.run = run
    yield


EACH = pytest.mark.parametrize("use", [calls, frames, samples, batches])
OF_DEVICES = pytest.mark.parametrize("use", [calls, frames, batches])


@EACH
def test_three_faults_in_a_row_are_the_last_try(use: Any, monkeypatch: Any) -> None:
    turn = Turn(monkeypatch)
    with use(turn):
        assert [turn.take(broken) for _ in range(3)] == [True] * 3
        assert [turn.take() for _ in range(3)] == [False] * 3


@EACH
def test_faults_between_successes_are_no_reason_to_give_up(use: Any, monkeypatch: Any) -> None:
    turn = Turn(monkeypatch)
    with use(turn):
        for _ in range(3):
            assert [turn.take(broken), turn.take(broken), turn.take()] == [True] * 3


@EACH
def test_no_fault_is_counted_where_the_original_fails_too(use: Any, monkeypatch: Any) -> None:
    turn = Turn(monkeypatch)
    with use(turn):
        assert all(turn.take(broken, own=True) for _ in range(4))
        assert turn.take()


@OF_DEVICES
def test_a_refusal_is_no_fault(use: Any, monkeypatch: Any) -> None:
    turn = Turn(monkeypatch)
    with use(turn):
        assert all(turn.take(refused) for _ in range(4))
        assert turn.take()


@OF_DEVICES
def test_one_wrong_result_is_the_last_try(use: Any, monkeypatch: Any) -> None:
    turn = Turn(monkeypatch, verify=2)
    with use(turn):
        assert [turn.take(), turn.take(off_by=1), turn.take()] == [True, True, False]
