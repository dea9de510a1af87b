"""Kernels that take turns: one call at a time on a device, by whatever name it is called."""

from __future__ import annotations

import itertools
import threading
import time
from typing import Any

import pytest

from devicecore import Device, DeviceMgr, Kernel, KernelRegistry
from devicecore.errors import NoKernelError, OutOfMemoryError


class Watched:
    """Counts how many calls overlap."""

    def __init__(self) -> None:
        self.now = self.most = self.instances = 0

    def call(self, device: Device) -> None:
        self.now += 1
        self.most = max(self.most, self.now)
        time.sleep(0.01)
        self.now -= 1

    def instance(self, device: Device) -> Any:
        self.instances += 1
        return self.call


@pytest.mark.parametrize("stateful", [False, True], ids=["not thread-safe", "stateful"])
def test_by_name_by_object_and_across_changes(stateful: bool) -> None:
    watched, registry, numbers = Watched(), KernelRegistry(), itertools.count()
    function = watched.instance if stateful else watched.call
    kernel = Kernel("x.turns", function, device_type="NPU", thread_safe=False, stateful=stateful)
    registry.register(kernel)
    device = Device("/device:NPU:0", registry=registry)

    def work(call: Any) -> None:
        for _ in range(5):
            device.compute(call)
            extra = Kernel("x.other", print, device_type="NPU", priority=next(numbers))
            registry.register(extra)  # every change makes devices choose anew

    threads = [threading.Thread(target=work, args=(call,)) for call in ("x.turns", kernel) * 3]
    for thread in threads:
        thread.start()
        registry.operations()
    for thread in threads:
        thread.join()
    assert watched.most == 1
    assert watched.instances == int(stateful)


class TestImpure:
    """What may have changed something is not run a second time, whichever kernel it was."""

    def manager(self, *kernels: Kernel) -> tuple[DeviceMgr, list[str]]:
        registry, ran = KernelRegistry(), []
        for kernel in kernels:
            registry.register(kernel)

        def on_cpu(device: Device) -> str:
            ran.append("CPU")
            return "CPU"

        registry.register(Kernel("x.y", on_cpu, device_type="CPU"))
        gpu = Device("/device:CUDA:0", device_class="GPU", priority=200, registry=registry)
        return DeviceMgr([Device("/device:CPU:0", registry=registry, priority=60), gpu]), ran

    def test_the_one_that_ran_counts_not_the_first_that_fits(self) -> None:
        def fails(device: Device) -> None:
            raise OutOfMemoryError(device.name)

        manager, ran = self.manager(
            Kernel("x.y", fails, device_type="CUDA", priority=9, supports=lambda device: False),
            Kernel("x.y", fails, device_type="CUDA", pure=False),
        )
        with pytest.raises(OutOfMemoryError):
            manager.compute("x.y")
        assert ran == []

    def test_its_own_error_is_no_refusal(self) -> None:
        def refuses(device: Device) -> None:
            raise NoKernelError("x.y", device.name)

        manager, ran = self.manager(Kernel("x.y", refuses, device_type="CUDA", pure=False))
        with pytest.raises(NoKernelError):
            manager.compute("x.y")
        assert ran == []

    def test_a_refused_call_may_move_since_nothing_ran(self) -> None:
        manager, ran = self.manager(
            Kernel("x.y", print, device_type="CUDA", pure=False, supports=lambda device: False)
        )
        assert manager.compute("x.y") == "CPU"
        assert ran == ["CPU"]
