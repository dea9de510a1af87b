"""`Device.compute_async`: a future that is done exactly once, whatever happens."""

from __future__ import annotations

import asyncio
import gc
import threading
import time
import weakref
from concurrent.futures import CancelledError, Future, wait
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

import pytest

from devicecore.device import Device
from devicecore.device.pool import TaskPool
from devicecore.errors import DeviceGoneError, NoKernelError
from tests.device.gates import PATIENCE_S, Gate

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def device() -> Iterator[Device]:
    made = Device("/device:NPU:0", threads=2)
    yield made
    made.close()


@pytest.fixture
def gate() -> Iterator[Gate]:
    made = Gate()
    yield made
    made.open.set()


class Done:
    """Counts how often it was called, and with what."""

    def __init__(self) -> None:
        self.futures: list[Future[Any]] = []
        self.called = threading.Event()

    def __call__(self, future: Future[Any]) -> None:
        self.futures.append(future)
        self.called.set()

    def once(self) -> Future[Any]:
        """Return the future that it was called with, once."""
        assert self.called.wait(PATIENCE_S)
        assert len(self.futures) == 1
        return self.futures[0]


def fill(device: Device, gate: Gate, threads: int = 2) -> list[Future[Any]]:
    """Keep all threads of *device* busy."""
    running = [device.compute_async(gate, number) for number in range(threads)]
    for _ in running:
        assert gate.entered.acquire(timeout=PATIENCE_S)
    return running


class TestDone:
    def test_after_a_result(self, device: Device) -> None:
        done = Done()
        future = device.compute_async(lambda device, x: x + 1, 41, done=done)
        assert future.result(PATIENCE_S) == 42
        assert done.once() is future

    def test_after_an_error(self, device: Device) -> None:
        done = Done()
        future = device.compute_async(lambda device: 1 // 0, done=done)
        assert isinstance(done.once().exception(PATIENCE_S), ZeroDivisionError)
        assert done.futures == [future]

    @pytest.mark.parametrize("error", [SystemExit(3), KeyboardInterrupt(), GeneratorExit()])
    def test_after_an_error_that_would_end_a_thread(
        self, error: BaseException, device: Device
    ) -> None:
        def fail(device: Device) -> None:
            raise error

        done = Done()
        device.compute_async(fail, done=done)
        assert done.once().exception(PATIENCE_S) is error
        assert device.compute_async(lambda device: 1).result(PATIENCE_S) == 1

    def test_where_no_kernel_fits(self, device: Device) -> None:
        done = Done()
        device.compute_async("test_device_async.unknown", done=done)
        assert isinstance(done.once().exception(PATIENCE_S), NoKernelError)

    def test_after_a_cancellation(self, device: Device, gate: Gate) -> None:
        running = fill(device, gate)
        done = Done()
        waiting = device.compute_async(gate, done=done)
        assert waiting.cancel()
        assert done.once() is waiting
        with pytest.raises(CancelledError):
            waiting.result(PATIENCE_S)
        assert not running[0].cancel()
        gate.open.set()
        assert not wait([*running, waiting], PATIENCE_S).not_done
        assert len(done.futures) == 1

    def test_after_closing(self, device: Device, gate: Gate) -> None:
        running = fill(device, gate)
        dones = [Done() for _ in range(5)]
        for done in dones:
            device.compute_async(gate, done=done)
        closing = threading.Thread(target=device.close)
        closing.start()
        for done in dones:
            assert done.once().cancelled()
        # Those who wait for a future are told as well; an executor of Python's own forgets them.
        assert not wait([done.once() for done in dones], PATIENCE_S).not_done
        assert closing.is_alive()  # it waits for what runs
        gate.open.set()
        closing.join(PATIENCE_S)
        assert not closing.is_alive()
        assert [future.result(PATIENCE_S) for future in running] == [0, 1]

    def test_on_a_device_that_is_gone(self, device: Device) -> None:
        device.close()
        done = Done()
        device.compute_async(lambda device: 1, done=done)
        assert isinstance(done.once().exception(PATIENCE_S), DeviceGoneError)

    def test_an_error_of_done_itself_hurts_nobody(
        self, device: Device, caplog: pytest.LogCaptureFixture
    ) -> None:
        def bad(future: Future[Any]) -> None:
            raise RuntimeError

        assert device.compute_async(lambda device: 1, done=bad).result(PATIENCE_S) == 1
        assert device.compute_async(lambda device: 2).result(PATIENCE_S) == 2

    def test_between_many_threads_and_a_close(self, gate: Gate) -> None:
        device = Device("/device:NPU:0", threads=2)
        dones: list[Done] = []
        start = threading.Barrier(5)

        def submit() -> None:
            start.wait()
            for _ in range(200):
                done = Done()
                dones.append(done)
                device.compute_async(lambda device: None, done=done)

        threads = [threading.Thread(target=submit) for _ in range(4)]
        for thread in threads:
            thread.start()
        start.wait()
        device.close()
        for thread in threads:
            thread.join(PATIENCE_S)
        assert len(dones) == 800
        for done in dones:
            assert done.once().done()


class TestWhere:
    def test_in_another_thread(self, device: Device) -> None:
        here = threading.get_ident()
        assert device.compute_async(lambda device: threading.get_ident()).result() != here

    def test_in_the_same_one_if_that_is_a_pools(self, device: Device) -> None:
        def outer(device: Device) -> tuple[int, int]:
            inner = device.compute_async(lambda device: threading.get_ident())
            assert inner.done()
            return threading.get_ident(), inner.result()

        outside, inside = device.compute_async(outer).result(PATIENCE_S)
        assert outside == inside

    def test_calls_that_wait_for_calls_do_not_lock_up(self, device: Device) -> None:
        def fibonacci(device: Device, n: int) -> int:
            if n < 2:
                return n
            both = [device.compute_async(fibonacci, n - step) for step in (1, 2)]
            return sum(future.result(PATIENCE_S) for future in both)

        many = [device.compute_async(fibonacci, 10) for _ in range(8)]
        assert [future.result(PATIENCE_S) for future in many] == [55] * 8

    def test_in_as_many_threads_as_it_was_told(self, device: Device, gate: Gate) -> None:
        running = [device.compute_async(gate) for _ in range(6)]
        for _ in range(2):
            assert gate.entered.acquire(timeout=PATIENCE_S)
        assert not gate.entered.acquire(timeout=0.2)
        gate.open.set()
        assert not wait(running, PATIENCE_S).not_done

    def test_in_a_copy_of_the_callers_context(self, device: Device) -> None:
        variable: ContextVar[str] = ContextVar("variable", default="nobody")

        def kernel(device: Device) -> str:
            seen = variable.get()
            variable.set("kernel")
            return seen

        token = variable.set("caller")
        first = device.compute_async(kernel)
        variable.reset(token)
        second = device.compute_async(kernel)
        assert (first.result(PATIENCE_S), second.result(PATIENCE_S)) == ("caller", "nobody")
        assert variable.get() == "nobody"

    def test_an_event_loop_can_wait_for_it(self, device: Device) -> None:
        async def main() -> list[Any]:
            calls = [
                asyncio.wrap_future(device.compute_async(lambda device, x: x * x, number))
                for number in range(5)
            ]
            return await asyncio.gather(*calls)

        assert asyncio.run(main()) == [0, 1, 4, 9, 16]

    def test_threads_start_when_they_are_needed(self) -> None:
        def running() -> int:
            return sum(each.name.startswith("THREADED:") for each in threading.enumerate())

        devices = [Device(f"/device:THREADED:{index}") for index in range(50)]
        assert running() == 0
        devices[0].compute_async(lambda device: 1).result(PATIENCE_S)
        assert running() == 1
        devices[0].close()
        assert running() == 0


class TestPool:
    """What the pool itself promises."""

    def test_the_submitter_never_waits(self) -> None:
        """Calls may wait for what their submitter does after it has submitted them all."""
        pool, go_on = TaskPool(1, "test"), threading.Event()
        futures = [pool.submit(go_on.wait) for _ in range(5000)]
        go_on.set()
        assert all(future.result(PATIENCE_S) for future in futures)
        pool.close()

    def test_a_long_chain_of_calls_does_not_exhaust_the_stack(self, device: Device) -> None:
        left, finished = [3000], threading.Event()

        def again(_: Future[Any]) -> None:
            left[0] -= 1
            if left[0]:
                device.compute_async(lambda device: None, done=again)
            else:
                finished.set()

        device.compute_async(lambda device: None, done=again)
        assert finished.wait(PATIENCE_S)

    def test_closing_from_another_pools_thread_waits(self) -> None:
        mine, other, started = TaskPool(1, "mine"), TaskPool(1, "other"), threading.Event()
        order: list[str] = []

        def slow() -> None:
            started.set()
            time.sleep(0.2)
            order.append("the call is done")

        other.submit(slow)
        assert started.wait(PATIENCE_S)
        mine.submit(other.close).result(PATIENCE_S)
        order.append("the pool is closed")
        assert order == ["the call is done", "the pool is closed"]
        mine.close()

    def test_errors_do_not_stop_it(self) -> None:
        pool = TaskPool(1, "test")
        for _ in range(20):
            assert isinstance(pool.submit(lambda: 1 // 0).exception(), ZeroDivisionError)
        pool.close()
        for _ in range(5):
            with pytest.raises(RuntimeError):
                pool.submit(int)

    def test_a_pool_may_be_closed_from_one_of_its_threads(self) -> None:
        pool = TaskPool(1, "test")
        pool.submit(pool.close).result(PATIENCE_S)
        with pytest.raises(RuntimeError):
            pool.submit(int)

    def test_a_device_may_be_closed_by_one_of_its_calls(self) -> None:
        device = Device("/device:NPU:0", threads=1)
        device.compute_async(lambda device: device.close()).result(PATIENCE_S)
        assert device.gone


def test_results_are_not_kept(device: Device) -> None:
    class Big:
        pass

    future = device.compute_async(lambda device: Big())
    kept = weakref.ref(future.result(PATIENCE_S))
    del future
    device.compute_async(lambda device: None).result(PATIENCE_S)
    gc.collect()
    assert kept() is None
