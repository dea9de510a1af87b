"""`DeviceMgr.compute` and `best_device`: who goes first, and who takes over.

The accelerators are plain devices with another name: what is tested is the choice.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import onnxruntime  # type: ignore[import-untyped]
import pytest
import torch

from devicecore.device import Device
from devicecore.device_factory import FactoryRegistry, Registration
from devicecore.device_mgr import DeviceMgr
from devicecore.device_mgr.placement import location
from devicecore.errors import (
    DeviceError,
    DeviceGoneError,
    FallbackForbiddenError,
    NoKernelError,
    NotLiveError,
    OutOfMemoryError,
    UnknownDeviceError,
)
from devicecore.kernels import Kernel, KernelRegistry
from devicecore.ledger import Ledger, Move
from devicecore.names import DeviceName

PRIORITIES = {"CUDA": 200, "NPU": 150, "CPU": 60}


@pytest.fixture
def kernels() -> KernelRegistry:
    return KernelRegistry()


@pytest.fixture
def ledger() -> Ledger:
    return Ledger()


@pytest.fixture
def manager(kernels: KernelRegistry, ledger: Ledger) -> DeviceMgr:
    """Return CPU:0, NPU:0 in the host's memory, and CUDA:0 and CUDA:1 with memory of their own."""
    registry = FactoryRegistry()
    for device_type, priority in PRIORITIES.items():
        registry.register(
            Registration(device_type, "never:Imported", priority, "test", device_type)
        )

    def device(name: str, **fields: Any) -> Device:
        return Device(f"/job:w/replica:0/task:0/device:{name}", registry=kernels, **fields)

    return DeviceMgr(
        [
            device("CPU:0", torch_device="cpu", frameworks=["onnx", "torch"]),
            device("NPU:0", memory=DeviceName.parse("CPU:0"), frameworks=["onnx"]),
            device("CUDA:0", torch_device="cuda:0", frameworks=["torch"]),
            device("CUDA:1", torch_device="cuda:1", frameworks=["torch"]),
        ],
        registry=registry,
        ledger=ledger,
    )


class FakeTensor(torch.Tensor):
    """A tensor that says that it lies elsewhere, since there is no GPU here."""

    lies_on = ""

    @property
    def device(self) -> torch.device:  # type: ignore[override]
        return torch.device(self.lies_on)


def tensor_on(device: str) -> FakeTensor:
    made = torch.zeros(1).as_subclass(FakeTensor)
    made.lies_on = device
    return made


def name(label: str) -> str:
    return f"/job:w/replica:0/task:0/device:{label}"


def where(device: Device, *_: Any) -> str:
    return device.label


def fail_on(*labels: str, error: type[Exception] = OutOfMemoryError) -> Any:
    def kernel(device: Device, *_: Any) -> str:
        if device.label in labels:
            raise error(device.name)
        return device.label

    return kernel


def put(kernels: KernelRegistry, *types: str, **fields: Any) -> None:
    function = fields.pop("function", where)
    for device_type in types:
        kernels.register(Kernel("op", function, device_type, **fields))


class TestBest:
    def test_the_highest_priority_goes_first(self, manager: DeviceMgr) -> None:
        assert manager.best_device().label == "CUDA:0"

    def test_a_devices_own_priority_goes_before_that_of_its_type(
        self, manager: DeviceMgr, kernels: KernelRegistry
    ) -> None:
        manager.add_devices([Device(name("NPU:1"), registry=kernels, priority=999)])
        assert manager.best_device().label == "NPU:1"

    def test_only_those_live_for_the_framework(self, manager: DeviceMgr) -> None:
        assert manager.best_device(framework="onnx").label == "NPU:0"
        assert manager.best_device(framework="torch").label == "CUDA:0"
        with pytest.raises(NotLiveError, match="not live for jax"):
            manager.best_device(framework="jax")

    def test_only_those_with_a_kernel(self, manager: DeviceMgr, kernels: KernelRegistry) -> None:
        put(kernels, "CPU")
        assert manager.best_device("op").label == "CPU:0"
        with pytest.raises(NoKernelError) as caught:
            manager.best_device("another op")
        assert len(caught.value.refused) == 4

    def test_those_that_are_gone_are_passed_over(self, manager: DeviceMgr) -> None:
        manager.lookup_device("CUDA:0").close()
        assert manager.best_device().label == "CUDA:1"

    @pytest.mark.parametrize(
        ("policy", "label"),
        [
            ("auto", "CUDA:0"),
            ("prefer:npu,cuda", "NPU:0"),
            ("prefer: rocm , cuda:1,cpu", "CUDA:1"),
            ("prefer:cuda:1", "CUDA:1"),
            ("require:cpu", "CPU:0"),
            ("require:CUDA:1", "CUDA:1"),
        ],
    )
    def test_a_policy_says_who_may_run(
        self, policy: str, label: str, manager: DeviceMgr, kernels: KernelRegistry
    ) -> None:
        put(kernels, "CPU", "NPU", "CUDA")
        assert manager.best_device(policy=policy).label == label
        assert manager.compute("op", policy=policy) == label

    @pytest.mark.parametrize(
        "policy", ["", "fastest", "prefer", "prefer:", "require:", "require:cpu,cuda", "auto:cpu"]
    )
    def test_what_is_no_policy_is_refused(self, policy: str, manager: DeviceMgr) -> None:
        with pytest.raises(ValueError, match="invalid policy"):
            manager.best_device(policy=policy)

    def test_what_is_required_has_to_be_there(self, manager: DeviceMgr) -> None:
        with pytest.raises(UnknownDeviceError):
            manager.best_device(policy="require:rocm")
        with pytest.raises(NotLiveError, match="there is no such device"):
            manager.best_device(policy="prefer:rocm,xpu")


class TestChoosing:
    def test_the_best_device_that_has_a_kernel_runs_it(
        self, manager: DeviceMgr, kernels: KernelRegistry
    ) -> None:
        put(kernels, "CPU")
        assert manager.compute("op") == "CPU:0"
        put(kernels, "CUDA")
        assert manager.compute("op") == "CUDA:0"

    def test_a_move_off_the_first_choice_is_in_the_ledger(
        self, manager: DeviceMgr, kernels: KernelRegistry, ledger: Ledger
    ) -> None:
        put(kernels, "CPU")
        for _ in range(3):
            manager.compute("op")
        (move,) = ledger.moves()
        assert (move.op, move.source, move.target) == ("op", name("CUDA:0"), name("CPU:0"))
        assert "for CPU" in move.reason
        assert ledger.total == 3

    def test_the_first_choice_leaves_no_trace(
        self, manager: DeviceMgr, kernels: KernelRegistry, ledger: Ledger
    ) -> None:
        put(kernels, "CUDA", "CPU")
        manager.compute("op")
        manager.compute("op", policy="require:cpu")
        manager.compute("op", policy="prefer:cpu,cuda")
        assert ledger.total == 0

    def test_a_forbidden_move_is_not_made(
        self, manager: DeviceMgr, kernels: KernelRegistry, ledger: Ledger
    ) -> None:
        ran: list[Device] = []
        put(kernels, "CPU", function=ran.append)
        with ledger.limited_to(0), pytest.raises(FallbackForbiddenError):
            manager.compute("op")
        assert ran == []

    def test_nobody_has_it(self, manager: DeviceMgr, kernels: KernelRegistry) -> None:
        with pytest.raises(NoKernelError) as caught:
            manager.compute("op")
        assert set(caught.value.refused) == {each.name for each in manager}
        put(kernels, "CUDA")
        with pytest.raises(NoKernelError, match="for CUDA"):
            manager.compute("op", policy="require:cpu")

    def test_a_kernel_or_a_callable_serves_as_well(
        self, manager: DeviceMgr, ledger: Ledger
    ) -> None:
        assert manager.compute(where) == "CUDA:0"
        assert manager.compute(Kernel("op", where, "CPU")) == "CPU:0"
        assert ledger.total == 1

    def test_who_does_not_support_the_arguments_lets_the_next_one(
        self, manager: DeviceMgr, kernels: KernelRegistry, ledger: Ledger
    ) -> None:
        put(kernels, "CUDA", supports=lambda device, x: x < 10, pure=False)
        put(kernels, "CPU", pure=False)
        assert manager.compute("op", 3) == "CUDA:0"
        assert manager.compute("op", 30) == "CPU:0"
        assert {move.source for move in ledger.moves()} == {name("CUDA:0"), name("CUDA:1")}

    def test_changes_count_at_once(self, manager: DeviceMgr, kernels: KernelRegistry) -> None:
        put(kernels, "CPU", "CUDA")
        assert manager.compute("op") == "CUDA:0"
        manager.remove_devices(["CUDA:0"])
        assert manager.compute("op") == "CUDA:1"
        manager.add_devices([Device(name("CUDA:0"), registry=kernels)])
        assert manager.compute("op") == "CUDA:0"
        manager.lookup_device("CUDA:0").retire("it fell off the bus")
        with pytest.raises(DeviceGoneError):
            manager.compute(Kernel("another", where, "CUDA", pure=False), policy="require:cuda:0")


class TestTakingOver:
    def test_the_next_one_runs_what_the_first_cannot(
        self, manager: DeviceMgr, kernels: KernelRegistry, ledger: Ledger
    ) -> None:
        put(kernels, "CPU", "NPU", "CUDA", function=fail_on("CUDA:0", "CUDA:1"))
        assert manager.compute("op", 1) == "NPU:0"
        assert [(move.source, move.target) for move in sorted(ledger.moves())] == [
            (name("CUDA:0"), name("CUDA:1")),
            (name("CUDA:1"), name("NPU:0")),
        ]
        assert all("out of memory" in move.reason for move in ledger.moves())

    def test_only_in_the_order_of_the_users_list(
        self, manager: DeviceMgr, kernels: KernelRegistry
    ) -> None:
        put(kernels, "CPU", "NPU", "CUDA", function=fail_on("CUDA:1"))
        assert manager.compute("op", policy="prefer:cuda:1,cpu") == "CPU:0"
        with pytest.raises(OutOfMemoryError):
            manager.compute("op", policy="prefer:cuda:1")
        with pytest.raises(OutOfMemoryError):
            manager.compute("op", policy="require:cuda:1")

    def test_only_for_kernels_that_are_pure(
        self, manager: DeviceMgr, kernels: KernelRegistry, ledger: Ledger
    ) -> None:
        put(kernels, "CPU", "CUDA", function=fail_on("CUDA:0"), pure=False)
        with pytest.raises(OutOfMemoryError):
            manager.compute("op")
        assert ledger.total == 0

    def test_a_callable_is_not_known_to_be_pure(self, manager: DeviceMgr) -> None:
        with pytest.raises(OutOfMemoryError):
            manager.compute(fail_on("CUDA:0"))

    @pytest.mark.parametrize("error", [ValueError, RuntimeError, MemoryError])
    def test_only_for_errors_of_a_device(
        self, error: type[Exception], manager: DeviceMgr, kernels: KernelRegistry, ledger: Ledger
    ) -> None:
        put(kernels, "CPU", "CUDA", function=fail_on("CUDA:0", error=error))
        with pytest.raises(error) as caught:
            manager.compute("op")
        assert not isinstance(caught.value, DeviceError)
        assert ledger.total == 0

    def test_the_last_error_is_raised_where_nobody_can(
        self, manager: DeviceMgr, kernels: KernelRegistry
    ) -> None:
        put(kernels, "CPU", "CUDA", function=fail_on("CUDA:0", "CUDA:1", "CPU:0"))
        with pytest.raises(OutOfMemoryError) as caught:
            manager.compute("op")
        assert caught.value.device == name("CPU:0")

    def test_a_budget_ends_it(
        self, manager: DeviceMgr, kernels: KernelRegistry, ledger: Ledger
    ) -> None:
        put(kernels, "CPU", "CUDA", function=fail_on("CUDA:0", "CUDA:1"))
        with ledger.limited_to(1), pytest.raises(FallbackForbiddenError) as caught:
            manager.compute("op")
        assert caught.value.target == name("CPU:0")

    def test_a_lost_device_is_not_the_first_choice_for_long(
        self, manager: DeviceMgr, kernels: KernelRegistry, ledger: Ledger
    ) -> None:
        put(kernels, "CPU", "CUDA", pure=False)
        assert manager.compute("op") == "CUDA:0"
        manager.lookup_device("CUDA:0").retire("it fell off the bus")
        with pytest.raises(DeviceGoneError):  # it might have been lost in the middle of a call
            manager.compute("op")
        assert manager.compute("op") == "CUDA:1"
        assert ledger.moves() == {
            Move("op", name("CUDA:0"), name("CUDA:1"), "it fell off the bus"): 1
        }

    def test_a_kernel_that_asked_for_another_in_vain_is_not_run_again(
        self, manager: DeviceMgr, kernels: KernelRegistry
    ) -> None:
        ran: list[str] = []

        def outer(device: Device) -> None:
            ran.append(device.label)
            device.compute("an operation that nobody has")

        put(kernels, "CPU", "CUDA", function=outer, pure=False)
        with pytest.raises(NoKernelError):
            manager.compute("op")
        assert ran == ["CUDA:0"]


class TestPlacement:
    """Nobody moves arguments: only devices that read them where they lie are considered."""

    @pytest.fixture(autouse=True)
    def _everywhere(self, kernels: KernelRegistry) -> None:
        put(kernels, "CPU", "NPU", "CUDA")

    @pytest.mark.parametrize(
        "make",
        [
            lambda: np.zeros(3),
            lambda: torch.zeros(3),
            lambda: onnxruntime.OrtValue.ortvalue_from_numpy(np.zeros(3, "float32")),
            lambda: [np.zeros(3), {"x": (torch.zeros(1),)}],
            lambda: torch.nn.Parameter(torch.zeros(1)),
            lambda: np.ma.zeros(3),
        ],
        ids=["numpy", "torch", "OrtValue", "nested", "subclass of torch", "subclass of numpy"],
    )
    def test_what_lies_in_the_hosts_memory(self, make: Any, manager: DeviceMgr) -> None:
        assert manager.compute("op", make()) == "NPU:0"

    @pytest.mark.parametrize("value", [3, "text", None, 2.5, b"x", (1, 2), {}, [], object()])
    def test_what_lies_nowhere_in_particular(self, value: Any, manager: DeviceMgr) -> None:
        assert manager.compute("op", value) == "CUDA:0"

    def test_keywords_count_as_well(self, manager: DeviceMgr, kernels: KernelRegistry) -> None:
        def takes(device: Device, *, x: Any) -> str:
            return device.label

        for device_type in PRIORITIES:
            kernels.register(Kernel("takes", takes, device_type))
        assert manager.compute("takes", x=np.zeros(3)) == "NPU:0"
        assert manager.compute("takes", x=3) == "CUDA:0"

    def test_what_lies_on_a_gpu_runs_on_that_gpu(self, manager: DeviceMgr) -> None:
        assert manager.compute("op", tensor_on("cuda:1")) == "CUDA:1"
        assert manager.compute("op", [1, tensor_on("cuda:0")]) == "CUDA:0"

    def test_what_no_device_reads_is_refused_with_the_reasons(
        self, manager: DeviceMgr, ledger: Ledger
    ) -> None:
        with pytest.raises(NoKernelError, match="does not read arguments in xpu:3"):
            manager.compute("op", tensor_on("xpu:3"))
        with pytest.raises(NoKernelError, match="several places"):
            manager.compute("op", tensor_on("cuda:0"), np.zeros(3))
        with pytest.raises(NoKernelError):
            manager.compute("op", [tensor_on("cuda:0"), np.zeros(3)])
        assert ledger.total == 0

    def test_the_policys_device_has_to_read_them_too(self, manager: DeviceMgr) -> None:
        with pytest.raises(NoKernelError, match="does not read arguments in cpu"):
            manager.compute("op", np.zeros(3), policy="require:cuda")

    def test_where_the_arguments_lie_is_no_move(self, manager: DeviceMgr, ledger: Ledger) -> None:
        manager.compute("op", np.zeros(3))
        assert ledger.total == 0

    def test_a_kernel_may_read_the_hosts_memory_from_a_gpu(
        self, manager: DeviceMgr, kernels: KernelRegistry
    ) -> None:
        put(kernels, "CUDA", priority=1, reads_host=True)
        assert manager.compute("op", np.zeros(3)) == "CUDA:0"

    def test_locations(self) -> None:
        assert location((), {}) == ""
        assert location((1, "a"), {"x": None}) == ""
        assert location((np.zeros(1),), {"x": torch.zeros(1)}) == "cpu"
        assert location((np.zeros(1), tensor_on("cuda:0")), {}) is None
