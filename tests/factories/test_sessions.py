"""Devices of ONNX Runtime, probed in a child process and run for real with what is installed."""

from __future__ import annotations

import ctypes
import sys
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from devicecore import config
from devicecore.device_factory import DeviceOptions, default_registry
from devicecore.device_mgr import DeviceMgr
from devicecore.errors import DeviceGoneError, OutOfMemoryError
from devicecore.liveness import hardware as _hardware
from devicecore.liveness.isolation import probe_in_child
from devicecore.names import DeviceName
from devicecore.optional import installed
from devicecore.ort import CPU_PROVIDER, SessionSpec, open_session
from devicecore.ort.tiny_model import INPUT, INPUT_VALUES, OUTPUT, expected_values, tiny_model
from devicecore_factories._session_device import SessionDevice
from devicecore_factories.openvino import OpenVINOPluginFactory
from devicecore_factories.webgpu import SoftwareWebGPUFactory, WebGPUFactory

if TYPE_CHECKING:
    from collections.abc import Callable

    from devicecore.liveness import Liveness

pytest.importorskip("onnxruntime")
numpy = pytest.importorskip("numpy")
onnx = pytest.importorskip("devicecore.onnx")

PATIENCE_S = 120.0
SOFTWARE = "ORT_WEBGPU_EP_ALLOW_SOFTWARE_ADAPTER"


def probed(factory: type) -> Liveness:
    """Return what a deep probe in a child process finds."""
    target = f"{factory.__module__}:{factory.__qualname__}"
    return probe_in_child(target, None, PATIENCE_S).liveness


def run_tiny_model(device: Any) -> None:
    """Run the model of the probes on *device* and compare."""
    feeds = {INPUT: numpy.array(INPUT_VALUES, numpy.float32).reshape(2, 4)}
    model = onnx.OnnxModel(tiny_model())
    result = device.compute(model, feeds)[OUTPUT]
    assert tuple(result.ravel()) == expected_values()
    session = model.session(device)
    assert session.live_nodes == session.total_nodes > 0


def processor_of_intel() -> bool:
    try:
        return "GenuineIntel" in Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        return False


# --- OpenVINO -----------------------------------------------------------------------------------


def test_openvino_on_a_processor_of_intel_is_live_and_runs() -> None:
    if not installed("onnxruntime_ep_openvino"):
        pytest.skip("onnxruntime-ep-openvino is not installed")
    if not processor_of_intel():
        pytest.skip("the OpenVINO plug-in takes hardware of Intel only")
    found = probed(OpenVINOPluginFactory)
    assert found.is_live, found
    made = OpenVINOPluginFactory().create_devices(DeviceOptions(physical=found.devices), "")
    device = next(device for device in made if device.device_class == "CPU")
    assert device.memory == DeviceName(device_type="CPU", index=0)
    assert device.session is not None
    opened = open_session(tiny_model(), device.session)
    assert opened.live_nodes == opened.total_nodes > 0
    run_tiny_model(device)
    device.close()


def test_openvino_on_another_processor_is_absent_and_says_whose_it_is() -> None:
    if not installed("onnxruntime_ep_openvino"):
        pytest.skip("onnxruntime-ep-openvino is not installed")
    if processor_of_intel():
        pytest.skip("this is hardware of Intel")
    found = probed(OpenVINOPluginFactory)
    if OpenVINOPluginFactory().is_here() is not False:
        pytest.skip("it cannot be told whose hardware this is")
    assert (found.state, found.evidence) == ("absent", "metadata")
    assert found.reason == "there is no hardware of Intel here"
    assert found.of("onnx").state == "absent"


# --- WebGPU -------------------------------------------------------------------------------------


def test_webgpu_without_an_adapter_is_registered_and_not_live() -> None:
    if not installed("onnxruntime_ep_webgpu"):
        pytest.skip("onnxruntime-ep-webgpu is not installed")
    found = probed(WebGPUFactory)
    if found.is_live:
        pytest.skip("this machine has a WebGPU adapter")
    assert found.state in {"absent", "broken"}
    assert found.evidence == ("metadata" if _hardware.has_gpu() is False else "opened")
    assert found.reason


def test_an_adapter_in_software_must_be_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    if not installed("onnxruntime_ep_webgpu"):
        pytest.skip("onnxruntime-ep-webgpu is not installed")
    monkeypatch.delenv(SOFTWARE, raising=False)
    found = SoftwareWebGPUFactory().probe(deep=True)
    assert (found.state, found.fix) == ("absent", "")
    assert f"{SOFTWARE}=1" in found.reason


def test_an_adapter_in_software_without_vulkan_is_broken(monkeypatch: pytest.MonkeyPatch) -> None:
    if not installed("onnxruntime_ep_webgpu"):
        pytest.skip("onnxruntime-ep-webgpu is not installed")
    if sys.platform != "linux":
        pytest.skip("only Linux needs Vulkan's own loader")
    try:
        ctypes.CDLL("libvulkan.so.1")
    except OSError:
        monkeypatch.setenv(SOFTWARE, "1")
    else:
        pytest.skip("this machine has Vulkan's loader")
    found = probed(SoftwareWebGPUFactory)
    assert found.state == "broken"
    assert "libvulkan.so.1" in found.reason
    assert "libvulkan.so.1" in found.fix


@pytest.fixture
def software_adapter(monkeypatch: pytest.MonkeyPatch, cache_dir: Path) -> None:
    """Skip where no Vulkan driver in software is set up."""
    visible = config.load().visible
    if not {"VK_ICD_FILENAMES", "VK_DRIVER_FILES"} & visible.keys():
        pytest.skip("no Vulkan driver is set: VK_ICD_FILENAMES names none, such as SwiftShader's")
    monkeypatch.setenv(SOFTWARE, "1")
    found = probed(SoftwareWebGPUFactory)
    assert found.is_live, found


@pytest.mark.usefixtures("software_adapter")
def test_an_adapter_in_software_is_a_processor_and_runs() -> None:
    device = default_registry().new_device("WEBGPU", DeviceOptions(), "")
    assert device.device_class == "CPU"
    assert device.physical_id == "cpu"
    run_tiny_model(device)
    value = device.allocate((2, 3), "float32")
    assert (value.device_name(), value.shape()) == ("webgpu", [2, 3])
    device.close()
    with pytest.raises(DeviceGoneError):
        run_tiny_model(device)


@pytest.mark.usefixtures("software_adapter")
def test_an_adapter_in_software_is_taken_only_where_it_is_named() -> None:
    with closing(DeviceMgr.create()) as manager:
        assert not manager.devices_by_type("WEBGPU")
    with closing(DeviceMgr.create(DeviceOptions(filters=("WEBGPU",)))) as manager:
        run_tiny_model(manager.lookup_device("WEBGPU:0"))


# --- the device itself, with ONNX Runtime's own provider for the CPU -----------------------------


@pytest.fixture
def device() -> Any:
    """A device that runs models on the CPU."""
    host = DeviceName(device_type="CPU", index=0)
    return SessionDevice("/device:NPU:0", memory=host, session=SessionSpec(CPU_PROVIDER))


def test_a_session_device_runs_models_and_allocates_on_the_host(device: SessionDevice) -> None:
    run_tiny_model(device)
    assert isinstance(device.allocate((2, 3), "float32"), numpy.ndarray)


def test_out_of_memory_names_the_device_and_not_the_provider(device: SessionDevice) -> None:
    def fail(_: object) -> None:
        raise OutOfMemoryError(CPU_PROVIDER, "the arena is full")

    with pytest.raises(OutOfMemoryError) as caught:
        device.compute(fail)
    assert (caught.value.device, caught.value.detail) == (device.name, "the arena is full")


def test_a_session_does_not_survive_a_fork_and_its_device_neither(
    device: SessionDevice, in_fork: Callable[[Callable[[], Any]], Any]
) -> None:
    def use() -> str:
        try:
            run_tiny_model(device)
        except DeviceGoneError as error:
            return error.reason
        return "it ran"

    assert in_fork(use) == "it ran"
    run_tiny_model(device)
    assert in_fork(use) == "it was opened before this process was forked"
    run_tiny_model(device)
