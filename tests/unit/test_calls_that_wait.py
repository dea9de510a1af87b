"""Asynchronous calls that wait for calls behind them: nothing hangs."""

from __future__ import annotations

import asyncio
import threading
import time
from concurrent.futures import Future, as_completed, wait
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from devicecore.device import Device
from devicecore.device.stalls import Activity
from tests.unit.gates import PATIENCE_S, Gate

if TYPE_CHECKING:
    from collections.abc import Callable


def in_a_thread(call: Callable[[], Any]) -> Any:
    """Return what *call* does in a thread of its own, which is waited for without an end."""
    results: list[Any] = []
    thread = threading.Thread(target=lambda: results.append(call()), daemon=True)
    thread.start()
    thread.join()
    return results[0]


WAITS: dict[str, Callable[[Future[Any]], Any]] = {
    "result": lambda future: future.result(),
    "wait": lambda future: wait([future]).done.pop().result(),
    "as_completed": lambda future: next(as_completed([future])).result(),
    "event loop": lambda future: asyncio.run(_awaited(future)),
}


async def _awaited(future: Future[Any]) -> Any:
    return await asyncio.wrap_future(future)


class TestCallsThatWaitForEachOther:
    """By a thread of their own, so that nothing tells who waits for whom."""

    @pytest.fixture(autouse=True)
    def impatient(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("devicecore.device.pool._PATIENCE_S", 0.05)
        monkeypatch.setattr("devicecore.device.pool._PATIENCE_OF_CLOSE_S", 0.2)

    @pytest.mark.parametrize("how", WAITS)
    def test_for_a_queued_call_of_the_same_device(self, how: str) -> None:
        device = Device("/device:NPU:0", threads=2)

        def outer(device: Device) -> Any:
            inner = partial(device.compute_async, lambda device: threading.current_thread().name)
            return in_a_thread(lambda: WAITS[how](inner()))

        futures = [device.compute_async(outer) for _ in range(6)]
        assert all("NPU:0" in future.result(PATIENCE_S) for future in futures)
        device.close()

    def test_for_calls_that_wait_in_turn(self) -> None:
        device = Device("/device:NPU:0", threads=1)

        def nested(device: Device, depth: int) -> int:
            if depth == 0:
                return 0
            inner: int = in_a_thread(lambda: device.compute_async(nested, depth - 1).result())
            return 1 + inner

        assert device.compute_async(nested, 4).result(PATIENCE_S) == 4
        device.close()

    def test_for_what_another_device_has_queued(self) -> None:
        one, two = (Device(f"/device:NPU:{index}", threads=1) for index in range(2))
        gate = Gate()
        running = [each.compute_async(gate) for each in (one, two)]
        later: dict[Device, Future[Any]] = {}
        first = [one.compute_async(lambda device: later[two].result()) for _ in range(2)]
        second = [two.compute_async(lambda device: later[one].result()) for _ in range(2)]
        later[one], later[two] = one.compute_async(lambda _: 1), two.compute_async(lambda _: 2)
        gate.open.set()
        assert [each.result(PATIENCE_S) for each in first + second] == [2, 2, 1, 1]
        assert not wait(running, PATIENCE_S).not_done
        one.close()
        two.close()

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
