"""How devices end: closed, retired, lost with their GPU, or forgotten."""

from __future__ import annotations

import gc
import threading
import weakref
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from devicecore.device import Device
from devicecore.errors import DeviceGoneError
from devicecore.kernels import Kernel, KernelRegistry


def put(registry: KernelRegistry, function: Any, **fields: Any) -> Kernel:
    made = Kernel("op", function, "NPU", **fields)
    registry.register(made)
    return made


class TestEnd:
    def test_a_closed_device_refuses_everything(
        self, registry: KernelRegistry, device: Device
    ) -> None:
        kernel = put(registry, lambda device: 1)
        device.compute("op")
        device.close()
        device.close()
        assert device.gone
        for call in ("op", kernel, lambda device: 1, "unknown"):
            with pytest.raises(DeviceGoneError, match="closed"):
                device.compute(call)
        for ask in (device.synchronize, device.refresh_status):
            with pytest.raises(DeviceGoneError):
                ask()
        put(registry, lambda device: 2, priority=1)  # a change wakes nothing up
        with pytest.raises(DeviceGoneError):
            device.compute("op")
        assert "gone" in repr(device)

    def test_an_unhashable_callable_is_refused_too(self, device: Device) -> None:
        class Unhashable:
            __hash__ = None  # type: ignore[assignment]

            def __call__(self, device: Device) -> int:
                return 1

        device.close()
        with pytest.raises(DeviceGoneError):
            device.compute(Unhashable())

    def test_the_first_reason_stays(self, device: Device) -> None:
        device.retire("it fell off the bus")
        device.close()
        with pytest.raises(DeviceGoneError, match="fell off the bus"):
            device.compute(lambda device: 1)

    def test_a_call_in_flight_finishes(self, device: Device) -> None:
        running, go_on = threading.Event(), threading.Event()

        def slow(device: Device) -> str:
            running.set()
            assert go_on.wait(60)
            return "finished"

        with ThreadPoolExecutor(1) as threads:
            call = threads.submit(device.compute, slow)
            assert running.wait(60)
            device.close()
            go_on.set()
            assert call.result() == "finished"

    def test_a_lost_gpu_takes_all_its_devices_along(self) -> None:
        cuda = Device("/device:CUDA:0", physical_id="GPU-of-this-test")
        tensorrt = Device("/device:TENSORRT:0", physical_id="GPU-of-this-test")
        other = Device("/device:CUDA:1", physical_id="another-GPU-of-this-test")
        cuda.lose("an illegal address was accessed")
        for device in (cuda, tensorrt):
            with pytest.raises(DeviceGoneError, match="illegal address"):
                device.compute(lambda device: 1)
        assert other.compute(lambda device: 1) == 1
        late = Device("/device:CUDA:0", physical_id="GPU-of-this-test")
        with pytest.raises(DeviceGoneError, match="illegal address"):
            late.compute(lambda device: 1)

    def test_a_device_that_nobody_keeps_is_freed(self) -> None:
        device = Device("/device:CUDA:0", physical_id="GPU-that-nobody-keeps")
        device.compute(lambda device: 1)
        alive = weakref.ref(device)
        del device
        gc.collect()
        assert alive() is None
