"""The process's own devices: the host at once, the others when asked for."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pytest

from devicecore import (
    DeviceFactory,
    FactoryRegistry,
    Liveness,
    PhysicalDevice,
    default_manager,
)
from devicecore.device_factory.device_creation import host_device
from devicecore.device_mgr import LOCAL_TASK, DeviceMgr
from devicecore.errors import InvalidDeviceNameError, NotLiveError, UnknownDeviceError
from devicecore.runtime import Runtime, host_cpu
from devicecore.testing import FakeFactory

if TYPE_CHECKING:
    from collections.abc import Sequence


class TwoGpus(FakeFactory):
    device_type = "CUDA"
    priority = 200
    count = 2
    frameworks = ("torch", "onnx")
    torch_name = "cuda"


class BrokenGpus(FakeFactory):
    device_type = "CUDA"
    priority = 200
    answer = Liveness("broken", reason="the driver is too old", fix="update the driver")


class BrokenXpu(BrokenGpus):
    device_type = "XPU"


class RocmGpus(FakeFactory):
    device_type = "ROCM"
    priority = 194
    frameworks = ("torch",)
    torch_name = "cuda"


def host_runtime(*factories: type[DeviceFactory]) -> Runtime:
    runtime = Runtime(FactoryRegistry("devicecore.discovery:factories"))
    for registration in runtime.registry.factories():
        if registration.device_type in {factory.device_type for factory in factories}:
            runtime.registry.unregister(registration)
    for factory in factories:
        local = type(factory.__name__, (factory,), {"__qualname__": f"<locals>.{factory.__name__}"})
        runtime.registry.register_class(factory.device_type, local)
    return runtime


def test_the_host_is_there_at_once_and_nothing_else_is_asked() -> None:
    asked = []

    class Watched(TwoGpus):
        def probe(self, framework: str | None = None, *, deep: bool = False) -> Liveness:
            asked.append(framework)
            return super().probe(framework, deep=deep)

    runtime = host_runtime(Watched)
    assert [device.device_type for device in runtime.manager] == ["CPU"]
    assert asked == []


def test_gpus_come_with_the_first_question() -> None:
    runtime = host_runtime(TwoGpus)
    assert len(runtime.manager) == 1
    second = runtime.device("cuda:1")
    assert second.name.endswith("CUDA:1")
    assert len(runtime.manager) == 3
    assert runtime.device("cuda:1") is second
    assert runtime.device(second) is second


def test_a_second_framework_extends_the_same_device() -> None:
    runtime = host_runtime(TwoGpus)
    gpu = runtime.device("cuda", "torch")
    assert gpu.frameworks == {"torch"}
    assert runtime.device("cuda", "onnx") is gpu
    assert gpu.frameworks == {"torch", "onnx"}


def test_the_process_has_one_host() -> None:
    assert host_cpu() is default_manager().host_cpu


def test_what_is_not_live_says_why() -> None:
    runtime = host_runtime(BrokenGpus, RocmGpus)
    runtime.registry.unregister(runtime.registry.factories("ROCM")[0])
    with pytest.raises(NotLiveError, match="driver is too old") as caught:
        runtime.device("cuda:0")
    assert caught.value.fix == "update the driver"


def test_torchs_name_of_a_rocm_gpu_finds_it() -> None:
    runtime = host_runtime(BrokenGpus, RocmGpus)
    assert runtime.device("cuda:0", "torch").device_type == "ROCM"


def test_names() -> None:
    runtime = host_runtime(TwoGpus)
    with pytest.raises(UnknownDeviceError):
        runtime.device("cuda:7")
    with pytest.raises(InvalidDeviceNameError):
        runtime.device("/job:*a")
    with pytest.raises(UnknownDeviceError):
        runtime.device("/device:NOBODY:0")


def test_a_family_means_its_best_gpu() -> None:
    runtime = host_runtime(TwoGpus)
    assert runtime.device("gpu:1").name.endswith("CUDA:1")


def test_threads_share_what_the_first_one_made() -> None:
    runtime = host_runtime(TwoGpus)
    found = []
    threads = [
        threading.Thread(target=lambda: found.append(runtime.device("cuda:0"))) for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 8
    assert len(set(map(id, found))) == 1


def test_a_lost_gpu_is_made_anew_under_its_name() -> None:
    runtime = host_runtime(TwoGpus)
    first = runtime.device("cuda:0")
    first.retire("it was unplugged")
    runtime.device("cuda:1").retire("it was unplugged")
    second = runtime.device("cuda:0")
    assert second is not first
    assert second.gone == ""


def test_a_gpu_that_this_process_has_lost_says_so() -> None:
    class Gpus(FakeFactory):
        device_type = "CUDA"
        priority = 200

        def list_physical_devices(self) -> Sequence[PhysicalDevice]:
            return (PhysicalDevice("CUDA", 0, physical_id="a GPU that is lost here only"),)

    runtime = host_runtime(Gpus)
    runtime.device("cuda:0").lose("it fell off the bus")
    with pytest.raises(NotLiveError, match="fell off the bus"):
        runtime.device("cuda:0")


def test_the_managers_lookup_asks_as_well() -> None:
    """Whoever looks a device up by its name wants it, whether or not anybody resolved it before."""
    manager = host_runtime(TwoGpus).manager
    assert "cuda" not in manager  # what only looks asks nobody
    assert manager.best_device().device_type == "CPU"
    assert len(manager) == 1
    assert manager.lookup_device("cuda:1").name.endswith("CUDA:1")
    assert "cuda" in manager
    assert host_runtime(TwoGpus).manager.lookup_device("GPU").name.endswith("CUDA:0")
    for policy in ("require:cuda", "prefer:xpu,cuda"):
        best = host_runtime(TwoGpus, BrokenXpu).manager.best_device(policy=policy)
        assert best.device_type == "CUDA"


@pytest.mark.parametrize("name", ["cuda", "CUDA:1", "/gpu:0", "tpu", "cuda:x", 3.5])
def test_what_the_managers_lookup_does_not_find_says_why(name: object) -> None:
    manager = host_runtime(BrokenGpus, BrokenXpu).manager
    with pytest.raises(UnknownDeviceError) as caught:
        manager.lookup_device(name)
    assert "untried" not in str(caught.value)
    if str(name).casefold().startswith("cuda") and name != "cuda:x":
        assert "CUDA is broken: the driver is too old" in str(caught.value)
    assert "did you mean 'CPU:0'" not in str(caught.value)


def test_a_manager_of_ones_own_says_what_tries_a_device() -> None:
    runtime = host_runtime(TwoGpus)
    manager = DeviceMgr([host_device(runtime.registry, LOCAL_TASK)], registry=runtime.registry)
    with pytest.raises(UnknownDeviceError, match=r"resolve\('cuda'\) tries it"):
        manager.lookup_device("cuda")
    runtime.device("cuda")
    with pytest.raises(UnknownDeviceError, match="live, and this manager was not given it"):
        manager.lookup_device("cuda")
    manager.close()
