"""GPUs: several devices on one, families that count GPUs, and memory that devices share."""

from __future__ import annotations

from typing import Any

import pytest

from devicecore.device import Device
from devicecore.device_factory import FactoryRegistry, Registration
from devicecore.device_mgr import DeviceMgr
from devicecore.errors import DeviceConflictError, DeviceGoneError, UnknownDeviceError
from devicecore.names import DeviceName

TASK = "/job:w/replica:0/task:0"
PRIORITIES = {"CUDA": 200, "TENSORRT": 198, "ROCM": 194, "OPENVINO": 190, "CPU": 60}


@pytest.fixture
def manager() -> DeviceMgr:
    registry = FactoryRegistry()
    for device_type, priority in PRIORITIES.items():
        registry.register(
            Registration(device_type, "never:Imported", priority, "test", device_type)
        )
    return DeviceMgr(registry=registry)


def device(name: str, task: str = TASK, **fields: Any) -> Device:
    return Device(f"{task}/device:{name}", **fields)


class TestFamilies:
    @pytest.fixture
    def gpus(self, manager: DeviceMgr) -> DeviceMgr:
        def gpu(name: str, gpu: str, *frameworks: str) -> Device:
            return device(name, device_class="GPU", physical_id=gpu, frameworks=frameworks)

        manager.add_devices(
            [
                device("CPU:0", frameworks=["onnx", "torch"]),
                gpu("CUDA:0", "GPU-a", "torch"),
                gpu("TENSORRT:0", "GPU-a", "onnx"),
                gpu("CUDA:1", "GPU-b", "torch"),
                gpu("OPENVINO:0", "GPU-c", "onnx"),
                device("OPENVINO:1", device_class="NPU", physical_id="npu-a", frameworks=["onnx"]),
            ]
        )
        return manager

    def test_each_gpu_counts_once(self, gpus: DeviceMgr) -> None:
        assert [each.label for each in gpus.find_devices("gpu")] == [
            "CUDA:0",
            "CUDA:1",
            "OPENVINO:0",
        ]
        assert gpus.num_device_type("GPU") == 3
        assert gpus.num_device_type("CUDA") == 2
        assert gpus.num_device_type("NPU") == 1
        assert gpus.num_device_type("TPU") == 0
        assert gpus.lookup_device("GPU:1").label == "CUDA:1"
        assert gpus.lookup_device("gpu:2").label == "OPENVINO:0"
        assert gpus.lookup_device("npu").label == "OPENVINO:1"
        with pytest.raises(UnknownDeviceError):
            gpus.lookup_device("gpu:3")

    def test_each_gpu_is_stood_for_by_its_best_device_for_a_framework(
        self, gpus: DeviceMgr
    ) -> None:
        found = gpus.find_devices("gpu", "onnx")
        assert [each.label for each in found] == ["TENSORRT:0", "OPENVINO:0"]
        assert gpus.lookup_device("gpu:0", "torch").label == "CUDA:0"
        assert gpus.lookup_device("gpu:0", "onnx").label == "TENSORRT:0"
        assert gpus.best_device(framework="onnx", policy="require:gpu").label == "TENSORRT:0"

    def test_siblings_are_on_the_same_gpu(self, gpus: DeviceMgr) -> None:
        cuda = gpus.lookup_device("CUDA:0")
        assert [each.label for each in gpus.siblings(cuda)] == ["TENSORRT:0"]
        assert gpus.siblings(gpus.lookup_device("CUDA:1")) == []
        assert gpus.siblings(gpus.lookup_device("CPU:0")) == []

    def test_cpu_is_always_the_type(self, gpus: DeviceMgr) -> None:
        gpus.add_devices([device("OPENVINO:2", device_class="CPU", physical_id="cpu")])
        assert [each.label for each in gpus.find_devices("cpu")] == ["CPU:0"]

    def test_a_type_of_that_name_comes_first(self, gpus: DeviceMgr) -> None:
        gpus.add_devices([device("GPU:0")])
        assert [each.label for each in gpus.find_devices("gpu")] == ["GPU:0"]

    def test_the_index_of_a_family_is_no_index_of_a_name(self, gpus: DeviceMgr) -> None:
        assert not gpus.lookup_device("gpu:2").parsed_name.matches(DeviceName.parse("gpu:2"))

    def test_cuda_means_rocm_where_torch_is_built_for_it(self, manager: DeviceMgr) -> None:
        manager.add_devices([device("CPU:0"), device("ROCM:1", torch_device="cuda:1")])
        assert manager.lookup_device("cuda").label == "ROCM:1"
        assert manager.lookup_device("cuda:1").label == "ROCM:1"
        with pytest.raises(UnknownDeviceError):
            manager.lookup_device("cuda:0")

    def test_and_not_where_cuda_is_live_or_torch_is_not_there(self, manager: DeviceMgr) -> None:
        manager.add_devices([device("ROCM:0")])
        with pytest.raises(UnknownDeviceError):
            manager.lookup_device("cuda")
        manager.add_devices([device("ROCM:1", torch_device="cuda:1"), device("CUDA:0")])
        assert manager.lookup_device("cuda").label == "CUDA:0"


class TestMemory:
    """A session device whose arguments lie in another device's memory."""

    def test_the_manager_links_a_device_to_its_memory(self, manager: DeviceMgr) -> None:
        cuda = device("CUDA:0")
        tensorrt = device("TENSORRT:0", memory=DeviceName.parse("CUDA:0"))
        manager.add_devices([tensorrt])
        assert tensorrt.memory_device is tensorrt
        manager.add_devices([cuda])
        assert tensorrt.memory_device is cuda

    def test_the_memory_is_that_of_the_same_task(self, manager: DeviceMgr) -> None:
        other = "/job:w/replica:0/task:1"
        manager.add_devices([device("CPU:0"), device("CPU:0", other)])
        coreml = device("COREML:0", other, memory=DeviceName.parse("CPU:0"))
        manager.add_devices([coreml])
        assert coreml.memory_device.name == f"{other}/device:CPU:0"
        assert coreml.reads_host_memory

    def test_memory_is_not_taken_away_from_who_uses_it(self, manager: DeviceMgr) -> None:
        cuda = device("CUDA:0")
        tensorrt = device("TENSORRT:0", memory=DeviceName.parse("CUDA:0"))
        manager.add_devices([device("CPU:0"), cuda, tensorrt])
        with pytest.raises(DeviceConflictError, match="keeps its arguments") as caught:
            manager.remove_devices([cuda])
        assert caught.value.name == cuda.name
        assert cuda in manager
        manager.remove_devices([cuda, tensorrt])
        assert cuda not in manager

    def test_who_uses_it_may_go(self, manager: DeviceMgr) -> None:
        cuda = device("CUDA:0")
        tensorrt = device("TENSORRT:0", memory=DeviceName.parse("CUDA:0"))
        manager.add_devices([cuda, tensorrt])
        manager.remove_devices([tensorrt])
        manager.remove_devices([cuda])
        assert len(manager) == 0

    def test_a_lost_gpu_is_lost_for_all_its_devices(self, manager: DeviceMgr) -> None:
        devices = [
            device(name, physical_id="GPU-of-this-manager") for name in ("CUDA:0", "TENSORRT:0")
        ]
        manager.add_devices([device("CPU:0"), *devices])
        devices[0].lose("it fell off the bus")
        for each in devices:
            with pytest.raises(DeviceGoneError, match="fell off the bus"):
                manager.lookup_device(each.name).compute(lambda device: 1)
        assert manager.best_device().label == "CPU:0"
