"""Devices: what they are, how they run kernels, and how they end.

The devices here are plain ones of our own; what a real accelerator does has tests of its own.
"""

from __future__ import annotations

import gc
import weakref
from functools import partial
from typing import Any

import pytest

from devicecore.device import Device, DeviceAttributes, DeviceLocality
from devicecore.errors import (
    DeviceError,
    InvalidDeviceNameError,
    NoKernelError,
    OutOfMemoryError,
)
from devicecore.kernels import Kernel, KernelRegistry
from devicecore.names import DeviceName
from devicecore.ort import SessionSpec


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
        with pytest.raises(TypeError, match="invalid kernel"):
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


class TestMemory:
    def test_the_host_allocates_numpy_arrays(self) -> None:
        array = Device("/device:CPU:0").allocate((2, 3), "float32")
        assert (array.shape, str(array.dtype)) == ((2, 3), "float32")

    def test_who_borrows_memory_allocates_there(self) -> None:
        class Gpu(Device):
            def allocate(self, shape: Any, dtype: str) -> Any:
                return f"{self.name}: {tuple(shape)} {dtype}"

        gpu, borrower = Gpu("/device:CUDA:0"), Device("/device:TENSORRT:0")
        borrower.link_memory(gpu)
        assert borrower.memory_device == gpu
        assert borrower.allocate([2], "int8") == "/device:CUDA:0: (2,) int8"
        host = Device("/device:CPU:0")
        borrower.link_memory(host)
        assert borrower.reads_host_memory
        borrower.link_memory(None)
        assert borrower.memory_device == borrower


def test_one_framework_may_be_given_without_a_list() -> None:
    assert Device("/device:NPU:0", frameworks="PyTorch").frameworks == {"torch"}
