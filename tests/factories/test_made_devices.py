"""The devices that each factory makes of GPUs that a probe has seen, with nothing opened."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from devicecore.device_factory import DeviceOptions
from devicecore.liveness import Liveness, PhysicalDevice
from devicecore.liveness import hardware as _hardware
from devicecore.names import DeviceName
from devicecore.ort import SessionSpec
from devicecore_factories import _session_probe
from devicecore_factories._session_device import SessionDevice
from devicecore_factories._torch_device import TorchDevice
from devicecore_factories.coreml import CoreMLFactory
from devicecore_factories.cuda import CudaFactory
from devicecore_factories.rocm import RocmFactory
from devicecore_factories.tensorrt import TensorRTFactory
from devicecore_factories.webgpu import WebGPUFactory

if TYPE_CHECKING:
    import pytest

    from devicecore_factories._backend import BackendFactory

UNTRIED = Liveness("untried", reason="made up")
LIVE = Liveness("live", "ran", reason="made up")
GPU = PhysicalDevice(
    "CUDA",
    1,
    "GPU-made-up",
    "NVIDIA H200",
    memory_bytes=141 << 30,
    numa_node=1,
    details={"pci_bus_id": "0000:3b:00.0", "compute_capability": "9.0"},
)


def made(factory: BackendFactory, gpu: PhysicalDevice, **options: Any) -> Any:
    (device,) = factory.create_devices(DeviceOptions(physical=(gpu,), **options), "/job:a/task:0")
    return device


def test_a_cuda_device_knows_its_gpu_and_opens_nothing() -> None:
    device = made(CudaFactory(), GPU, frameworks=("torch", "onnx"))
    assert isinstance(device, TorchDevice)
    assert device.name == "/job:a/task:0/device:CUDA:1"
    assert (device.torch_device, device.physical_id) == ("cuda:1", "GPU-made-up")
    assert device.label == "CUDA:1 (NVIDIA H200, sm_90)"
    assert device.session == SessionSpec("CUDAExecutionProvider", {"device_id": "1"})
    assert device.frameworks == {"torch", "onnx"}
    assert device.attributes.locality.bus_id == "0000:3b:00.0"
    assert device.attributes.locality.numa_node == 1
    assert device.memory is None
    assert not device.reads_host_memory


def test_a_framework_that_is_not_live_is_left_out() -> None:
    torch_only = made(CudaFactory(), GPU, frameworks=("torch",))
    assert torch_only.session is None
    onnx_only = made(CudaFactory(), GPU, frameworks=("onnx",))
    assert isinstance(onnx_only, SessionDevice)
    assert onnx_only.torch_device is None


def test_a_gpu_that_failed_for_every_framework_is_left_out() -> None:
    failed = PhysicalDevice("CUDA", 0, "GPU-old", details={"why_not_torch": "no kernel for sm_35"})
    options = DeviceOptions(physical=(failed, GPU), frameworks=("torch",))
    devices = CudaFactory().create_devices(options, "")
    assert [device.parsed_name.index for device in devices] == [1]


def test_the_session_of_a_plugin_survives_the_way_from_the_child() -> None:
    spec = SessionSpec("cuda_ep", {}, 0, "/plugin.so")
    device = made(CudaFactory(), _session_probe.with_session(GPU, spec), frameworks=("onnx",))
    assert device.session == spec


def test_a_memory_limit_reaches_onnxruntime_too() -> None:
    device = made(CudaFactory(), GPU, frameworks=("torch", "onnx"), memory_limit=1 << 30)
    assert device.attributes.memory_limit == 1 << 30
    assert device.session.options == {"device_id": "1", "gpu_mem_limit": str(1 << 30)}


def test_tensorrt_keeps_its_arguments_in_cudas_memory() -> None:
    device = made(TensorRTFactory(), GPU)
    assert device.memory == DeviceName(device_type="CUDA", index=1)
    assert device.torch_device is None
    assert device.physical_id == "GPU-made-up"
    assert device.session == SessionSpec("TensorrtExecutionProvider", {"device_id": "1"})


def test_coreml_keeps_its_arguments_in_the_hosts_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Made up: no Mac was there."""
    monkeypatch.setattr(_hardware, "SYSTEM", "darwin")
    (gpu,) = CoreMLFactory().list_physical_devices()
    device = made(CoreMLFactory(), gpu)
    assert (device.device_class, device.memory) == ("NPU", DeviceName(device_type="CPU", index=0))
    assert device.session == SessionSpec("CoreMLExecutionProvider")


def test_rocm_is_cuda_to_torch_and_migraphx_to_onnxruntime() -> None:
    """Made up: no GPU of AMD was there."""
    device = made(RocmFactory(), PhysicalDevice("ROCM", 1, "0000:26:00.0"))
    assert device.torch_device == "cuda:1"
    assert device.device_type == "ROCM"
    assert device.session == SessionSpec("MIGraphXExecutionProvider", {"device_id": "1"})
    onnx_only = made(RocmFactory(), PhysicalDevice("ROCM", 1), frameworks=("onnx",))
    assert onnx_only.memory == DeviceName(device_type="CPU", index=0)


def test_webgpu_keeps_its_arguments_in_its_own_memory() -> None:
    spec = SessionSpec("WebGpuExecutionProvider", {}, 0, "/plugin.so")
    gpu = _session_probe.with_session(PhysicalDevice("WEBGPU", 0, "0000:03:00.0"), spec)
    device = made(WebGPUFactory(), gpu)
    assert device.memory is None
    assert device.session == spec
