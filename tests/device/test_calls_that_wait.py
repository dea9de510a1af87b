"""Asynchronous calls that wait until their own device is closed: nothing hangs."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Any

import pytest

from devicecore.device import Device
from devicecore.device.stalls import Activity
from tests.device.gates import PATIENCE_S, Gate

if TYPE_CHECKING:
    from collections.abc import Callable


def in_a_thread(call: Callable[[], Any]) -> Any:
    """Return what *call* does in a thread of its own, which is waited for without an end."""
    results: list[Any] = []
    thread = threading.Thread(target=lambda: results.append(call()), daemon=True)
    thread.start()
    thread.join()
    return results[0]


class TestCallsThatWait:
    """By a thread of their own, so that nothing tells who waits for whom."""

    @pytest.fixture(autouse=True)
    def impatient(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("devicecore.device.pool._PATIENCE_S", 0.2)

    @pytest.mark.parametrize("number", [1, 2, 3])
    def test_for_the_closing_of_each_others_device(self, number: int) -> None:
        devices = [Device(f"/device:NPU:{index}", threads=1) for index in range(number)]
        all_run = threading.Barrier(number)

        def close_next(device: Device) -> str:
            all_run.wait()
            following = devices[(devices.index(device) + 1) % number]
            in_a_thread(following.close)
            return following.gone

        futures = [each.compute_async(close_next) for each in devices]
        assert [each.result(PATIENCE_S) for each in futures] == ["it was closed"] * number

    def test_state_is_kept_until_the_last_call_is_done(self) -> None:
        device, dropped, gate = Device("/device:NPU:0", threads=1), threading.Event(), Gate()

        class State:
            def close(self) -> None:
                dropped.set()

        device.resource_mgr.lookup_or_create("test", "state", State)
        future = device.compute_async(gate, 1)
        assert gate.entered.acquire(timeout=PATIENCE_S)
        device.close()
        assert not dropped.is_set()
        gate.open.set()
        assert future.result(PATIENCE_S) == 1
        assert dropped.wait(PATIENCE_S)

    def test_not_while_one_of_them_computes(self) -> None:
        activity, stop, computes = Activity(), threading.Event(), threading.Event()

        def compute() -> None:
            with activity:
                while time.thread_time() < 0.5:
                    pass
                computes.set()
                stop.wait(PATIENCE_S)

        def idle() -> None:
            with activity:
                stop.wait(PATIENCE_S)

        threads = [threading.Thread(target=target) for target in (idle, compute)]
        threads[0].start()
        before = activity.measure()
        threads[1].start()
        assert computes.wait(PATIENCE_S)
        assert not activity.only_waits_since(before)
        before = activity.measure()
        time.sleep(0.2)
        assert activity.only_waits_since(before)
        stop.set()
        assert activity.wait_until_over(PATIENCE_S)
        assert not activity.only_waits_since(before)  # it goes on
        for thread in threads:
            thread.join(PATIENCE_S)


def test_no_more_calls_run_at_once_than_allowed_though_they_only_wait() -> None:
    device, gate, both = Device("/device:NPU:0", threads=1), Gate(), threading.Semaphore(0)
    first = device.compute_async(gate, 1)
    second = device.compute_async(lambda device: both.release())
    assert gate.entered.acquire(timeout=PATIENCE_S)
    assert not both.acquire(timeout=1.0)
    gate.open.set()
    assert first.result(PATIENCE_S) == 1
    second.result(PATIENCE_S)
    device.close()
