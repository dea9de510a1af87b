"""One migrated call: what its caller gets, whose errors, and what is counted."""

from __future__ import annotations

import gc
import logging
import sys
import threading
import weakref
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from devicecore.errors import (
    DeviceGoneError,
    FallbackForbiddenError,
    NoKernelError,
    OutOfMemoryError,
    RefusedCallError,
)
from devicecore.ledger import default_ledger
from devicecore.migrate.calls.report import MOST_REASONS
from tests.migrate.sites import PATH, FakeGpu, OwnError, Recorded, failing, site

if TYPE_CHECKING:
    from collections.abc import Iterator

torch = pytest.importorskip("torch")


@pytest.fixture(autouse=True)
def moves() -> Iterator[Any]:
    default_ledger().clear()
    yield lambda: {move.reason: count for move, count in default_ledger().moves().items()}
    default_ledger().clear()


def test_the_device_answers_and_the_original_is_not_called() -> None:
    original = Recorded()
    one = site(lambda x, y: x + y)
    assert one.call(original, (1,), {"y": 2}) == 3
    assert original.calls == []
    row = one.tally.row()
    assert (row.path, row.calls, row.migrated, row.fell_back) == (PATH, 1, 1, 0)


def test_a_refusal_falls_back_once_and_says_so_once(
    moves: Any, caplog: pytest.LogCaptureFixture
) -> None:
    refused = RefusedCallError("cv2.f", "FAKE:0", {"torch": "not these arguments"})
    original, one = Recorded(), site(failing(refused))
    given = np.zeros(3)
    with caplog.at_level(logging.WARNING, "devicecore"):
        for _ in range(5):
            assert one.call(original, (given,), {"key": given}) == "the original's"
    assert len(original.calls) == 5
    args, kwargs = original.calls[0]
    assert args[0] is given
    assert kwargs["key"] is given
    assert moves() == {"torch: not these arguments": 5}
    assert len(caplog.records) == 1
    assert one.tally.row().reasons == {"torch: not these arguments": 5}
    assert one.call(original, (), {}) == "the original's"  # a refusal is no fault


@pytest.mark.parametrize("error", [ValueError("x"), NoKernelError("f", "d"), MemoryError("big")])
def test_whatever_a_kernel_raises_the_original_answers(error: Exception, moves: Any) -> None:
    one = site(failing(error))
    assert one.call(Recorded(), (), {}) == "the original's"
    assert list(moves()) == [f"{type(error).__name__}: {error}"]


def test_what_a_failed_call_used_is_gone_at_once() -> None:
    def kernel(array: Any) -> None:
        raise ValueError(array)

    array = np.zeros(3)
    kept = weakref.ref(array)
    gc.disable()  # no cycle of ours waits for a collection
    try:
        site(kernel).call(lambda array: array.sum(), (), {"array": array})
        del array
        assert kept() is None
    finally:
        gc.enable()


def test_an_interrupt_is_no_fault() -> None:
    original = Recorded()
    with pytest.raises(KeyboardInterrupt):
        site(failing(KeyboardInterrupt())).call(original, (), {})
    assert original.calls == []


def test_three_faults_in_a_row_switch_the_path_off(moves: Any) -> None:
    calls = []

    def kernel() -> str:
        calls.append(0)
        if len(calls) == 3:
            return "the device's"
        msg = "broken"
        raise ValueError(msg)

    one = site(kernel)
    answers = [one.call(Recorded(), (), {}) for _ in range(9)]
    assert answers == ["the original's"] * 2 + ["the device's"] + ["the original's"] * 6
    assert len(calls) == 6  # two, a good one, and three more
    off = "switched off after 3 faults, the last one: ValueError: broken"
    assert moves() == {"ValueError: broken": 5, off: 3}


def test_no_device_is_to_blame_for_calls_that_the_original_refuses_too() -> None:
    one = site(failing(TypeError("what is this?")))
    for _ in range(9):
        with pytest.raises(OwnError):
            one.call(Recorded(OwnError()), (), {})
    assert one.call(Recorded(), (), {}) == "the original's"
    assert "switched off" not in str(one.tally.row().reasons)


@pytest.mark.parametrize("kernel_error", [ValueError("x"), RefusedCallError("f", "d")])
def test_the_originals_error_is_as_it_is_without_us(kernel_error: Exception) -> None:
    cause = KeyError("why")
    own = OwnError("mine")
    own.__cause__ = cause
    with pytest.raises(OwnError) as caught:
        site(failing(kernel_error)).call(Recorded(own), (), {})
    assert caught.value is own
    assert own.__cause__ is cause
    assert own.__context__ is None


def test_while_the_original_runs_no_error_of_ours_is_being_handled() -> None:
    seen = []
    site(failing(ValueError())).call(lambda: seen.append(sys.exc_info()), (), {})
    assert seen == [(None, None, None)]


def test_an_error_of_the_programs_own_function_is_neither_doubled_nor_swallowed() -> None:
    own = OwnError("mine")
    original = Recorded(own)
    one = site(lambda function, x: function(x), runs_original=True)
    with pytest.raises(OwnError) as caught:
        one.call(original, (1,), {})
    assert caught.value is own
    assert own.__cause__ is None
    assert own.__context__ is None
    assert len(original.calls) == 1
    assert one.tally.row().calls == 1


def test_an_error_of_devicecore_in_the_programs_own_function_is_its_own() -> None:
    refused = RefusedCallError("cv2.resize", "CPU:0", {"torch": "no"})
    original = Recorded(refused)
    with pytest.raises(RefusedCallError) as caught:
        site(lambda function: function(), runs_original=True).call(original, (), {})
    assert caught.value is refused
    assert len(original.calls) == 1


def test_a_lost_device_below_the_programs_own_function_lets_it_run_once_more(moves: Any) -> None:
    gone = DeviceGoneError("FAKE:0", "lost")
    answers = iter([gone, "on the host"])

    def original() -> Any:
        answer = next(answers)
        if isinstance(answer, Exception):
            raise answer
        return answer

    one = site(lambda function: function(), runs_original=True)
    assert one.call(original, (), {}) == "on the host"
    assert len(moves()) == 1


def test_strict_raises_the_kernels_error(moves: Any) -> None:
    refused = RefusedCallError("cv2.f", "FAKE:0", {"torch": "no"})
    with pytest.raises(RefusedCallError) as caught:
        site(failing(refused), strict=True).call(Recorded(), (), {})
    assert caught.value is refused
    assert moves() == {}


def test_strict_leaves_the_originals_own_error_first() -> None:
    with pytest.raises(OwnError):
        site(failing(ValueError()), strict=True).call(Recorded(OwnError()), (), {})


def test_strict_runs_no_function_of_the_program_again() -> None:
    original = Recorded(DeviceGoneError("FAKE:0", "lost"))
    with pytest.raises(DeviceGoneError):
        site(lambda f: f(), runs_original=True, strict=True).call(original, (), {})
    assert len(original.calls) == 1


def test_strict_raises_where_calls_may_not_leave_the_host() -> None:
    original, device = Recorded(), FakeGpu()
    device.retire("it was closed")
    with pytest.raises(NoKernelError, match="it was closed"):
        site(lambda: 1, device=device, strict=True).call(original, (), {})
    assert original.calls == []


def test_a_ledger_that_forbids_it_is_obeyed() -> None:
    original, one = Recorded(), site(failing(ValueError("x")))
    with default_ledger().limited_to(1):
        one.call(original, (), {})
        with pytest.raises(FallbackForbiddenError, match=PATH):
            one.call(original, (), {})
    assert len(original.calls) == 1


def _raised(large: Any) -> RuntimeError:
    """Return an error that was raised where *large* is in use."""
    try:
        large.reshape(99)
    except ValueError:
        return RuntimeError("out of memory").with_traceback(sys.exc_info()[2])
    raise AssertionError


def test_out_of_memory_frees_what_the_call_used_and_the_caches(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # A fake: there is no GPU here.
    freed: list[bool] = []
    kept: list[weakref.ref[Any]] = []
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)
    monkeypatch.setattr(torch.cuda, "empty_cache", lambda: freed.append(kept[0]() is None))

    def kernel() -> None:
        large = np.zeros(10)
        kept.append(weakref.ref(large))
        raise OutOfMemoryError("CUDA:0", "too much") from _raised(large)

    assert site(kernel).call(Recorded(), (), {}) == "the original's"
    assert freed == [True]


# --- what the plan and the process allow ----------------------------------------------------------


@pytest.mark.parametrize("by_name", [False, True])
def test_small_images_stay_because_the_plan_says_so(by_name: bool, moves: Any) -> None:
    used = []
    one = site(lambda *_, **__: used.append(0), min_pixels=100, strict=True)
    for shape in [(9, 11), (9, 11, 3), (10, 10), (10, 10, 3)]:
        image = np.zeros(shape, np.uint8)
        args, kwargs = ((), {"src": image}) if by_name else ((image,), {})
        with default_ledger().limited_to(0):
            one.call(Recorded(), args, kwargs)
    assert len(used) == 2
    assert moves() == {}
    assert one.tally.row().reasons == {"fewer than 100 pixels": 2}


def test_the_pixels_of_a_programs_own_function_are_those_of_the_calls_inside() -> None:
    one = site(lambda function, index: function(index), runs_original=True, min_pixels=100)
    one.call(Recorded(), (3,), {})
    assert one.tally.row().migrated == 1


def test_images_in_lists_have_pixels_too() -> None:
    used = []
    one = site(lambda *_: used.append(0), min_pixels=100)
    one.call(Recorded(), ([np.zeros((10, 10)), np.zeros((10, 10))],), {})
    assert used == [0]
    one.call(Recorded(), (torch.zeros(3, 10, 10),), {})
    assert used == [0, 0]
    one.call(Recorded(), ("no image",), {})
    assert used == [0, 0]


def test_a_path_that_is_off_from_the_start() -> None:
    original = Recorded()
    one = site(lambda: 1, off="no such GPU")
    assert one.call(original, (), {}) == "the original's"
    assert one.tally.row().reasons == {"no such GPU": 1}


# --- counts ---------------------------------------------------------------------------------------


def test_reasons_are_bounded_in_number_and_length(
    moves: Any, caplog: pytest.LogCaptureFixture
) -> None:
    count = iter(range(1000))

    def kernel() -> None:
        if (number := next(count)) % 3 == 2:
            return
        msg = f"error {number}\n at {number:#x}" + "x" * 5000
        raise ValueError(msg)

    one = site(kernel)
    with caplog.at_level(logging.WARNING, "devicecore"):
        for _ in range(300):
            one.call(Recorded(), (), {})
    row = one.tally.row()
    assert len(row.reasons) == MOST_REASONS + 1
    assert sum(row.reasons.values()) == row.fell_back == 200
    assert all(len(reason) <= 300 and "\n" not in reason for reason in row.reasons)
    assert len(moves()) == len(caplog.records) == MOST_REASONS + 1


def test_bytes_are_those_that_go_to_the_device_and_back() -> None:
    image, small = np.zeros((4, 5), np.uint8), np.zeros(3, np.float32)
    one = site(lambda *_, **__: (image[:2], [small]))
    one.call(Recorded(), ([image], 3), {"mask": small, "dst": np.zeros(1000)})
    assert one.tally.row().bytes_moved == (20 + 12) + (10 + 12)


def test_nothing_is_moved_for_the_host_itself() -> None:
    from devicecore.runtime import host_cpu

    one = site(lambda x: x, device=host_cpu())
    one.call(Recorded(), (np.zeros(9),), {})
    assert one.tally.row().bytes_moved == 0


def test_counts_from_threads_are_right() -> None:
    turns = iter(range(4000))
    lock = threading.Lock()

    def kernel() -> int:
        with lock:
            turn = next(turns)
        if turn % 4 == 0:
            raise RefusedCallError("f", "d", {"torch": "every fourth"})
        return 7

    one = site(kernel, verify=5)
    threads = [
        threading.Thread(target=lambda: [one.call(lambda: 7, (), {}) for _ in range(500)])
        for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    row = one.tally.row()
    assert (row.calls, row.migrated, row.fell_back) == (4000, 3000, 1000)
    assert row.reasons == {"torch: every fourth": 1000}
