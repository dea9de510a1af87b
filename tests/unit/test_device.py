"""Devices: what they are, how they run kernels, and how they end.

The devices here are plain ones of our own; what a real accelerator does has tests of its own.
"""

from __future__ import annotations

import gc
import threading
import weakref
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import pytest

from devicecore.device import Device, DeviceAttributes, DeviceLocality
from devicecore.errors import (
    DeviceError,
    DeviceGoneError,
    InvalidDeviceNameError,
    NoKernelError,
    OutOfMemoryError,
    UnknownResourceError,
)
from devicecore.kernels import Kernel, KernelRegistry
from devicecore.names import DeviceName
from devicecore.ort import SessionSpec


@pytest.fixture
def registry() -> KernelRegistry:
    return KernelRegistry()


@pytest.fixture
def device(registry: KernelRegistry) -> Device:
    return Device("/job:localhost/replica:0/task:0/device:NPU:0", registry=registry)


def put(registry: KernelRegistry, function: Any, **fields: Any) -> Kernel:
    made = Kernel("op", function, "NPU", **fields)
    registry.register(made)
    return made


class TestWhatItIs:
    def test_name_and_attributes(self) -> None:
        locality = DeviceLocality("0000:3b:00.0", 1, ("GPU-2",))
        device = Device(
            "/job:w/replica:0/task:3/device:cuda:2",
            device_class="GPU",
            description="NVIDIA H200",
            physical_id="GPU-1",
            memory_limit=2**30,
            locality=locality,
            frameworks=["onnx", "torch"],
            torch_device="cuda:2",
            session=SessionSpec("CUDAExecutionProvider"),
            priority=200,
            is_local=False,
        )
        assert device.name == "/job:w/replica:0/task:3/device:CUDA:2"
        assert device.parsed_name == DeviceName("w", 0, 3, "CUDA", 2)
        assert (device.device_type, device.device_class) == ("CUDA", "GPU")
        assert (device.physical_id, device.torch_device) == ("GPU-1", "cuda:2")
        assert device.frameworks == {"torch", "onnx"}
        assert device.label == "CUDA:2 (NVIDIA H200)"
        assert device.session is not None
        assert not device.is_local
        assert device.memory_device is device
        assert device.memory_stats()["limit"] == 2**30
        attributes = device.attributes
        assert (attributes.name, attributes.memory_limit) == (device.name, 2**30)
        assert attributes.locality == locality
        assert device.name in repr(device)

    def test_an_incarnation_tells_a_device_from_the_next_one(self) -> None:
        incarnations = {Device("/device:NPU:0").attributes.incarnation for _ in range(100)}
        assert len(incarnations) == 100
        assert 0 not in incarnations
        assert all(0 < each < 2**64 for each in incarnations)

    def test_without_a_description_the_label_is_the_name(self, device: Device) -> None:
        assert device.label == "NPU:0"

    @pytest.mark.parametrize("name", ["/device:NPU:*", "/job:w", "", "cuda", "/device:*:1", "?"])
    def test_a_device_needs_a_type_and_an_index(self, name: str) -> None:
        with pytest.raises(InvalidDeviceNameError):
            Device(name)

    def test_attributes_are_a_value(self) -> None:
        assert DeviceAttributes("n", "t", incarnation=5) == DeviceAttributes(
            "n", "t", incarnation=5
        )


class TestCompute:
    def test_an_operation_is_called_with_the_device(
        self, registry: KernelRegistry, device: Device
    ) -> None:
        put(registry, lambda device, x, *, factor=1: (device.name, x * factor))
        assert device.compute("op", 3) == (device.name, 3)
        assert device.compute("op", 3, factor=2) == (device.name, 6)

    def test_a_kernel_or_a_callable_serves_as_well(self, device: Device) -> None:
        assert device.compute(Kernel("op", lambda device, x: x + 1, "NPU"), 1) == 2
        assert device.compute(lambda device, x: x + 2, 1) == 3
        assert device.compute(partial(lambda y, device, x: x + y, 3), 1) == 4

    def test_a_callable_that_cannot_be_a_key_serves_as_well(self, device: Device) -> None:
        class Unhashable:
            __hash__ = None  # type: ignore[assignment]

            def __call__(self, device: Device, x: int) -> int:
                return x + 1

        assert device.compute(Unhashable(), 1) == 2
        assert device.compute_async(Unhashable(), 1).result() == 2

    @pytest.mark.parametrize("nonsense", [3, None, ["op"], b"op"], ids=repr)
    def test_what_is_no_kernel_is_refused(self, nonsense: Any, device: Device) -> None:
        with pytest.raises(TypeError, match="is no kernel"):
            device.compute(nonsense)

    def test_arguments_may_have_any_name(self, device: Device) -> None:
        def takes(device: Any, **kwargs: Any) -> Any:
            return kwargs

        names: dict[str, Any] = {"kernel": 1, "self": 2, "op": 3}
        assert device.compute(takes, **names) == names
        assert device.compute_async(takes, **names).result() == names

    def test_a_kernel_of_another_type_is_refused(self, device: Device) -> None:
        with pytest.raises(NoKernelError) as caught:
            device.compute(Kernel("op", lambda device: 1, "CUDA"))
        assert caught.value.refused == {"op for CUDA": "it is for CUDA"}
        assert caught.value.device == device.name

    def test_callables_are_not_kept(self, device: Device) -> None:
        class Callable:
            def __call__(self, device: Device) -> int:
                return 1

        made = Callable()
        alive = weakref.ref(made)
        device.compute(made)
        del made
        gc.collect()
        assert alive() is None

    def test_it_is_re_entrant(self, registry: KernelRegistry, device: Device) -> None:
        def factorial(device: Device, n: int) -> Any:
            return 1 if n == 0 else n * device.compute("op", n - 1)

        put(registry, factorial)
        assert device.compute("op", 10) == 3628800

    def test_an_error_goes_through_as_it_is(self, device: Device) -> None:
        error = KeyError("mine")

        def fail(device: Device) -> None:
            raise error

        with pytest.raises(KeyError) as caught:
            device.compute(fail)
        assert caught.value is error

    def test_a_subclass_says_what_a_frameworks_error_means(self) -> None:
        class Gpu(Device):
            def device_error(self, error: Exception) -> DeviceError | None:
                if "out of memory" in str(error):
                    return OutOfMemoryError(self.name, str(error))
                return None

        def fail(device: Device, text: str) -> None:
            raise RuntimeError(text)

        gpu = Gpu("/device:CUDA:0")
        with pytest.raises(OutOfMemoryError) as caught:
            gpu.compute(fail, "CUDA out of memory")
        assert isinstance(caught.value.__cause__, RuntimeError)
        with pytest.raises(RuntimeError, match="another one") as other:
            gpu.compute(fail, "another one")
        assert not isinstance(other.value, DeviceError)

    def test_a_new_kernel_is_taken_at_once_and_goes_at_once(
        self, registry: KernelRegistry, device: Device
    ) -> None:
        put(registry, lambda device: "first")
        assert device.compute("op") == "first"
        better = put(registry, lambda device: "better", priority=1)
        assert device.compute("op") == "better"
        registry.unregister(better)
        assert device.compute("op") == "first"

    def test_its_own_kernels_stay_with_it(self) -> None:
        device = Device("/device:NPU:0", kernels=[Kernel("test_device.own", lambda device: 1)])
        assert device.compute("test_device.own") == 1


class TestArguments:
    def test_the_first_that_supports_the_arguments_is_taken(
        self, registry: KernelRegistry, device: Device
    ) -> None:
        put(registry, lambda device, x: "small", priority=2, supports=lambda device, x: x < 10)
        put(registry, lambda device, x: "even", priority=1, supports=lambda device, x: x % 2 == 0)
        assert device.compute("op", 3) == "small"
        assert device.compute("op", 12) == "even"
        with pytest.raises(NoKernelError) as caught:
            device.compute("op", 13)
        assert list(caught.value.refused.values()) == ["it does not support these arguments"]
        put(registry, lambda device, x: "any")
        assert device.compute("op", 13) == "any"
        assert device.compute("op", 3) == "small"

    def test_a_predicate_is_asked_with_all_arguments(
        self, registry: KernelRegistry, device: Device
    ) -> None:
        def supports(device: Device, x: int, *, flag: str = "") -> bool:
            return device.device_type == "NPU" and flag == "nearest"

        put(registry, lambda device, x, *, flag="": flag, supports=supports)
        assert device.compute("op", 1, flag="nearest") == "nearest"
        with pytest.raises(NoKernelError):
            device.compute("op", 1)

    def test_an_error_of_a_predicate_is_not_hidden(
        self, registry: KernelRegistry, device: Device
    ) -> None:
        put(registry, lambda device, x: x, supports=lambda device, x: x.shape)
        with pytest.raises(AttributeError):
            device.compute("op", 3)

    def test_exactness_may_depend_on_the_arguments(
        self, registry: KernelRegistry, device: Device
    ) -> None:
        put(
            registry,
            lambda device, x: "fast",
            priority=1,
            exactness=lambda device, x: "exact" if x % 2 == 0 else "lsb1",
        )
        put(registry, lambda device, x: "slow", exactness="exact")
        assert device.compute("op", 2) == "fast"
        assert device.compute("op", 3) == "slow"

    def test_who_names_a_kernel_has_accepted_its_exactness(self, device: Device) -> None:
        close = Kernel("op", lambda device, x: x, "NPU", label="fast", exactness="close")
        assert device.compute(close, 1) == 1
        by_call = Kernel(
            "op", lambda device, x: x, "NPU", label="fast", exactness=lambda device, x: "close"
        )
        assert device.compute(by_call, 1) == 1

    def test_a_named_kernel_still_has_to_support_the_arguments(self, device: Device) -> None:
        picky = Kernel("op", lambda device, x: x, "NPU", supports=lambda device, x: x < 10)
        assert device.compute(picky, 1) == 1
        with pytest.raises(NoKernelError):
            device.compute(picky, 11)


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

    def test_a_lost_card_takes_all_its_devices_along(self) -> None:
        cuda = Device("/device:CUDA:0", physical_id="card-of-this-test")
        tensorrt = Device("/device:TENSORRT:0", physical_id="card-of-this-test")
        other = Device("/device:CUDA:1", physical_id="another-card-of-this-test")
        cuda.lose("an illegal address was accessed")
        for device in (cuda, tensorrt):
            with pytest.raises(DeviceGoneError, match="illegal address"):
                device.compute(lambda device: 1)
        assert other.compute(lambda device: 1) == 1
        late = Device("/device:CUDA:0", physical_id="card-of-this-test")
        with pytest.raises(DeviceGoneError, match="illegal address"):
            late.compute(lambda device: 1)

    def test_a_device_that_nobody_keeps_is_freed(self) -> None:
        device = Device("/device:CUDA:0", physical_id="card-that-nobody-keeps")
        device.compute(lambda device: 1)
        alive = weakref.ref(device)
        del device
        gc.collect()
        assert alive() is None


class TestMemory:
    def test_the_host_allocates_numpy_arrays(self) -> None:
        array = Device("/device:CPU:0").allocate((2, 3), "float32")
        assert (array.shape, str(array.dtype)) == ((2, 3), "float32")

    def test_who_borrows_memory_allocates_there(self) -> None:
        class Card(Device):
            def allocate(self, shape: Any, dtype: str) -> Any:
                return f"{self.name}: {tuple(shape)} {dtype}"

        card, borrower = Card("/device:CUDA:0"), Device("/device:TENSORRT:0")
        borrower.link_memory(card)
        assert borrower.memory_device == card
        assert borrower.allocate([2], "int8") == "/device:CUDA:0: (2,) int8"
        host = Device("/device:CPU:0")
        borrower.link_memory(host)
        assert borrower.reads_host_memory
        borrower.link_memory(None)
        assert borrower.memory_device == borrower
