"""One migrated call: what its caller gets, whose errors, and what is counted."""

from __future__ import annotations

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
from devicecore.migrate.report import MOST_REASONS
from tests.migrate.sites import PATH, FakeCard, site

if TYPE_CHECKING:
    from collections.abc import Iterator

torch = pytest.importorskip("torch")


class OwnError(Exception):
    """One of a program."""


class Recorded:
    """A function that keeps what it was called with."""

    def __init__(self, answer: Any = "the original's") -> None:
        self.answer = answer
        self.calls: list[Any] = []

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        self.calls.append((args, kwargs))
        if isinstance(self.answer, BaseException):
            raise self.answer
        return self.answer


def failing(error: BaseException) -> Any:
    def compute(*_: Any, **__: Any) -> Any:
        raise error

    return compute


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
    original, device = Recorded(), FakeCard()
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
    # A fake: there is no card here.
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


# --- verified calls -------------------------------------------------------------------------------


def test_one_of_n_calls_is_verified() -> None:
    original = Recorded(7)
    one = site(lambda: 7, verify=3)
    assert [one.call(original, (), {}) for _ in range(9)] == [7] * 9
    assert len(original.calls) == 3
    assert one.tally.row().migrated == 9


def test_refused_calls_are_not_those_that_are_verified() -> None:
    turns = iter(range(100))

    def kernel() -> int:
        if next(turns) % 2:
            raise RefusedCallError("f", "d")
        return 7

    original = Recorded(7)
    one = site(kernel, verify=2)
    for _ in range(20):
        one.call(original, (), {})
    assert len(original.calls) > 10 + 4  # ten refused ones, and about every second other


@pytest.mark.parametrize(
    "wrong",
    [
        np.full((2, 2), 8, np.uint8),
        np.full((2, 2), 7, np.int32),
        np.full((2, 1), 7, np.uint8),
        None,
        (np.full((2, 2), 7, np.uint8),),
    ],
    ids=["values", "dtype", "shape", "nothing", "tuple"],
)
def test_a_wrong_kernel_is_caught_and_not_used_again(wrong: Any, moves: Any) -> None:
    right = np.full((2, 2), 7, np.uint8)
    kernel = Recorded(wrong)
    one = site(kernel, verify=1)
    for _ in range(3):
        assert one.call(Recorded(right), (), {}) is right
    assert len(kernel.calls) == 1
    assert moves() == {"its result was not exact, so it is not used any more": 3}
    row = one.tally.row()
    assert (row.calls, row.migrated, row.fell_back) == (3, 0, 3)


def test_strict_raises_for_a_wrong_kernel() -> None:
    with pytest.raises(NoKernelError, match="not exact"):
        site(lambda: 8, verify=1, strict=True).call(Recorded(7), (), {})


def test_a_kernel_that_takes_what_the_original_refuses_is_wrong() -> None:
    one = site(lambda: 8, verify=1)
    with pytest.raises(OwnError):
        one.call(Recorded(OwnError()), (), {})
    assert one.call(Recorded(7), (), {}) == 7
    assert one.tally.row().migrated == 0


def test_what_is_accepted_is_enough() -> None:
    found, expected = np.full(3, 8, np.uint8), np.full(3, 7, np.uint8)
    one = site(lambda: found, verify=1, accept="lsb1")
    one.call(Recorded(expected), (), {})
    assert one.tally.row().migrated == 1


def test_both_compute_from_the_same_where_the_result_goes_into_an_argument() -> None:
    def doubled(array: Any) -> Any:
        array *= 2
        return array

    given = np.arange(6)
    one = site(doubled, verify=1)
    assert one.call(doubled, (given,), {}) is given
    assert given.tolist() == [0, 2, 4, 6, 8, 10]
    assert one.tally.row().migrated == 1


def test_a_kernel_that_wrote_before_it_failed_has_written_nothing_when_it_is_verified() -> None:
    def spoiled(array: Any) -> Any:
        array[:] = 99
        raise ValueError

    given = np.arange(3)
    site(spoiled, verify=1).call(lambda array: array.sum(), (given,), {})
    assert given.tolist() == [0, 1, 2]


def test_functions_of_the_program_do_not_run_twice_to_be_verified() -> None:
    original = Recorded(1)
    one = site(lambda f: f(), runs_original=True, verify=1)
    for _ in range(5):
        one.call(original, (), {})
    assert len(original.calls) == 5


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
    one = site(lambda: 1, off="no such card")
    assert one.call(original, (), {}) == "the original's"
    assert one.tally.row().reasons == {"no such card": 1}


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
