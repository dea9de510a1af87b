"""Kernels that keep state, and kernels that bear one call at a time."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from devicecore.device import Device
from devicecore.errors import UnknownResourceError
from devicecore.kernels import Kernel, KernelRegistry


def put(registry: KernelRegistry, function: Any, **fields: Any) -> Kernel:
    made = Kernel("op", function, "NPU", **fields)
    registry.register(made)
    return made


class Counter:
    """A stateful kernel: made for a device, called with it."""

    made = 0

    def __init__(self, device: Device) -> None:
        type(self).made += 1
        self.calls = 0
        self.closed = False

    def __call__(self, device: Device, step: int) -> int:
        self.calls += step
        return self.calls

    def close(self) -> None:
        self.closed = True


class TestState:
    def test_a_stateful_kernel_is_made_once_and_keeps_its_state(
        self, registry: KernelRegistry, device: Device
    ) -> None:
        kernel = put(registry, Counter, stateful=True)
        before = Counter.made
        assert [device.compute("op", step) for step in (1, 2, 3)] == [1, 3, 6]
        assert device.compute(kernel, 4) == 10
        assert Counter.made == before + 1

    def test_two_devices_do_not_share_it(self, registry: KernelRegistry, device: Device) -> None:
        other = Device("/device:NPU:1", registry=registry)
        put(registry, Counter, stateful=True)
        assert (device.compute("op", 1), other.compute("op", 1)) == (1, 1)

    def test_it_lives_in_the_op_segment_of_the_device(
        self, registry: KernelRegistry, device: Device
    ) -> None:
        kernel = put(registry, Counter, stateful=True)
        device.compute("op", 1)
        kept = device.op_segment.find_or_create("", kernel, lambda: Counter(device))
        assert kept.calls == 1
        device.op_segment.add_hold("training")
        own = device.op_segment.find_or_create("training", kernel, lambda: Counter(device))
        assert own is not kept
        device.close()
        assert kept.closed
        assert own.closed

    def test_closing_a_session_drops_its_kernels(self, device: Device) -> None:
        device.op_segment.add_hold("s")
        kept = device.op_segment.find_or_create("s", "n", lambda: Counter(device))
        device.op_segment.remove_hold("s")
        assert kept.closed
        with pytest.raises(UnknownResourceError):
            device.op_segment.find_or_create("s", "n", lambda: Counter(device))

    def test_its_state_survives_a_change_of_the_registry(
        self, registry: KernelRegistry, device: Device
    ) -> None:
        put(registry, Counter, stateful=True)
        device.compute("op", 1)
        registry.register(Kernel("another", lambda device: 1, "NPU"))
        assert device.compute("op", 1) == 2

    def test_resources_are_closed_with_the_device(self, device: Device) -> None:
        kept = device.resource_mgr.lookup_or_create("models", "m", lambda: Counter(device))
        assert device.resource_mgr.lookup("models", "m") is kept
        device.close()
        assert kept.closed


class Overlap:
    """A kernel that notices when two calls overlap."""

    def __init__(self) -> None:
        self.running = 0
        self.most = 0
        self.guard = threading.Lock()

    def __call__(self, device: Device, depth: int = 0) -> None:
        with self.guard:
            self.running += 1
            self.most = max(self.most, self.running)
        if depth:
            device.compute("op", depth - 1)
        threading.Event().wait(0.002)
        with self.guard:
            self.running -= 1


class TestThreads:
    @pytest.mark.parametrize("fields", [{"thread_safe": False}, {"stateful": True}], ids=str)
    def test_what_is_not_thread_safe_is_serialised(
        self, fields: dict[str, bool], registry: KernelRegistry, device: Device
    ) -> None:
        overlap = Overlap()
        put(registry, (lambda device: overlap) if "stateful" in fields else overlap, **fields)
        with ThreadPoolExecutor(8) as threads:
            for future in [threads.submit(device.compute, "op") for _ in range(40)]:
                future.result()
        assert overlap.most == 1

    def test_what_is_serialised_may_call_itself(
        self, registry: KernelRegistry, device: Device
    ) -> None:
        overlap = Overlap()
        put(registry, overlap, thread_safe=False)
        with ThreadPoolExecutor(4) as threads:
            for future in [threads.submit(device.compute, "op", 3) for _ in range(8)]:
                future.result(60)
        assert overlap.most == 4

    def test_two_devices_do_not_wait_for_each_other(
        self, registry: KernelRegistry, device: Device
    ) -> None:
        meet = threading.Barrier(2)
        put(registry, lambda device: meet.wait(60), thread_safe=False)
        other = Device("/device:NPU:1", registry=registry)
        with ThreadPoolExecutor(2) as threads:
            both = [threads.submit(each.compute, "op") for each in (device, other)]
            assert sorted(future.result() for future in both) == [0, 1]

    def test_calls_overlap_otherwise(self, registry: KernelRegistry, device: Device) -> None:
        meet = threading.Barrier(4)
        put(registry, lambda device: meet.wait(60))
        with ThreadPoolExecutor(4) as threads:
            calls = [threads.submit(device.compute, "op") for _ in range(4)]
            assert sorted(future.result() for future in calls) == [0, 1, 2, 3]
