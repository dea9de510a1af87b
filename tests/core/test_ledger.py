"""The ledger: moves are counted, limited, and in the log once."""

from __future__ import annotations

import asyncio
import logging
import threading
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import TYPE_CHECKING, Any

import pytest

from devicecore import ledger as module
from devicecore.errors import FallbackForbiddenError
from devicecore.ledger import Ledger, Move, default_ledger

if TYPE_CHECKING:
    from collections.abc import Callable

MOVE = ("cv2.resize", "CUDA:0", "CPU:0", "out of memory")


@pytest.fixture
def ledger() -> Ledger:
    return Ledger()


def test_moves_are_counted_by_their_kind(ledger: Ledger) -> None:
    for _ in range(3):
        ledger.record(*MOVE)
    ledger.record("cv2.blur", "CUDA:0", "CPU:0", "out of memory")
    ledger.record("cv2.resize", "CUDA:1", "CPU:0", "out of memory")
    assert next(iter(ledger.moves().items())) == (Move(*MOVE), 3)
    assert len(ledger.moves()) == 3
    assert ledger.total == 5
    ledger.clear()
    assert ledger.total == 0
    assert not ledger.moves()


def test_a_copy_of_the_moves_stays_as_it_is(ledger: Ledger) -> None:
    ledger.record(*MOVE)
    before = ledger.moves()
    ledger.record(*MOVE)
    assert before[Move(*MOVE)] == 1


def test_one_kind_of_move_is_logged_once(ledger: Ledger, caplog: pytest.LogCaptureFixture) -> None:
    for _ in range(5):
        ledger.record(*MOVE)
    ledger.record("cv2.blur", "CUDA:0", "CPU:0", "out of memory")
    assert [(record.name, record.levelno) for record in caplog.records] == [
        ("devicecore", logging.WARNING),
        ("devicecore", logging.WARNING),
    ]
    assert caplog.messages[0] == "cv2.resize moved from CUDA:0 to CPU:0: out of memory"


def test_what_stays_on_a_device_is_logged_so(
    ledger: Ledger, caplog: pytest.LogCaptureFixture
) -> None:
    ledger.record("cv2.resize", "CPU:0", "CPU:0", "no kernel")
    assert caplog.messages == ["cv2.resize is left to the original function on CPU:0: no kernel"]


@pytest.mark.parametrize("budget", [0, 1, 3])
def test_a_budget_is_for_all_moves(budget: int) -> None:
    ledger = Ledger(budget)
    for number in range(budget):
        ledger.record(f"op{number}", *MOVE[1:])
    with pytest.raises(FallbackForbiddenError) as caught:
        ledger.record(*MOVE)
    assert caught.value.budget == budget
    assert ledger.total == budget
    ledger.clear()
    if budget:
        ledger.record(*MOVE)


def test_a_budget_can_be_changed(ledger: Ledger) -> None:
    ledger.record(*MOVE)
    ledger.budget = 1
    with pytest.raises(FallbackForbiddenError):
        ledger.record(*MOVE)
    ledger.budget = None
    ledger.record(*MOVE)
    assert ledger.total == 2


def test_a_block_may_forbid_what_the_ledger_allows(ledger: Ledger) -> None:
    with ledger.limited_to(0), pytest.raises(FallbackForbiddenError):
        ledger.record(*MOVE)
    ledger.record(*MOVE)
    assert ledger.total == 1


def test_blocks_nest_and_the_inner_one_counts_for_the_outer(ledger: Ledger) -> None:
    with ledger.limited_to(2):
        with ledger.limited_to(1):
            ledger.record(*MOVE)
            with pytest.raises(FallbackForbiddenError):
                ledger.record(*MOVE)
        ledger.record(*MOVE)
        with pytest.raises(FallbackForbiddenError) as caught, ledger.limited_to(5):
            ledger.record(*MOVE)
        assert caught.value.budget == 2
    assert ledger.total == 2


def test_a_block_that_ends_with_an_error_ends(ledger: Ledger) -> None:
    with pytest.raises(ZeroDivisionError), ledger.limited_to(0):
        raise ZeroDivisionError
    ledger.record(*MOVE)


def test_a_block_limits_its_own_thread_only(ledger: Ledger) -> None:
    with ledger.limited_to(0), ThreadPoolExecutor(1) as other:
        other.submit(ledger.record, *MOVE).result()
        copied = copy_context()
        with pytest.raises(FallbackForbiddenError):
            other.submit(lambda: copied.run(ledger.record, *MOVE)).result()
    assert ledger.total == 1


def test_a_block_limits_its_own_task_and_the_tasks_that_it_starts(ledger: Ledger) -> None:
    async def record() -> str:
        await asyncio.sleep(0)
        try:
            ledger.record(*MOVE)
        except FallbackForbiddenError:
            return "forbidden"
        return "allowed"

    async def limited() -> tuple[str, str]:
        with ledger.limited_to(0):
            return await record(), await asyncio.create_task(record())

    async def both() -> tuple[tuple[str, str], str]:
        return await asyncio.gather(limited(), record())

    assert tuple(asyncio.run(both())) == (("forbidden", "forbidden"), "allowed")


def test_one_ledgers_block_does_not_limit_another(ledger: Ledger) -> None:
    other = Ledger()
    with ledger.limited_to(0):
        other.record(*MOVE)
    assert other.total == 1


def test_reasons_without_end_take_no_memory_without_end(
    ledger: Ledger, caplog: pytest.LogCaptureFixture
) -> None:
    most = module._MOST_MOVES
    for number in range(most + 500):
        ledger.record(*MOVE[:3], f"allocating {number} bytes failed")
    assert len(ledger.moves()) == most + 1
    assert ledger.total == most + 500
    assert next(iter(ledger.moves().values())) == 500
    # The move that stands for all others is one kind, too.
    assert len(caplog.records) == most + 1


def test_no_move_is_lost_between_threads(ledger: Ledger) -> None:
    with ThreadPoolExecutor(8) as threads:
        for future in [threads.submit(ledger.record, *MOVE) for _ in range(2000)]:
            future.result()
    assert ledger.moves() == {Move(*MOVE): 2000}


def test_a_budget_is_exact_between_threads() -> None:
    ledger = Ledger(100)
    start = threading.Barrier(8)

    def work() -> int:
        start.wait()
        done = 0
        for _ in range(50):
            try:
                ledger.record(*MOVE)
            except FallbackForbiddenError:
                continue
            done += 1
        return done

    with ThreadPoolExecutor(8) as threads:
        assert sum(future.result() for future in [threads.submit(work) for _ in range(8)]) == 100


def test_a_forked_child_is_not_locked_out(in_fork: Callable[..., Any], ledger: Ledger) -> None:
    def child() -> int:
        ledger.record(*MOVE)
        return ledger.total

    with ledger._lock:
        assert in_fork(child) == 1
    assert ledger.total == 0


def test_the_default_ledger_is_one() -> None:
    assert default_ledger() is default_ledger()
