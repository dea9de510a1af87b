"""Where a transfer goes: the words for devices, and what is said of those that are not there."""

from __future__ import annotations

import subprocess
import sys
import types
from typing import Any

import pytest

import devicecore
from devicecore.device import Device
from devicecore.device_factory import FactoryRegistry, default_registry
from devicecore.errors import (
    DeviceGoneError,
    InvalidDeviceNameError,
    NotLiveError,
    UnknownDeviceError,
)
from devicecore.liveness import Liveness
from devicecore.names import DeviceName
from devicecore.runtime import Runtime
from devicecore.scope import device_lookup, parse_device
from devicecore.testing import FakeFactory
from devicecore.transfer import PendingTransfer, tensors_to_device
from devicecore.transfer import target as target_module
from devicecore.transfer.request import Request
from devicecore.transfer.target import Target, target_of
from devicecore.transfer.torch_copy import queueing_sources

torch = pytest.importorskip("torch")


class FakeCuda(FakeFactory):
    """Two GPUs that torch would call cuda:0 and cuda:1."""

    device_type = "CUDA"
    count = 2
    torch_name = "cuda"


def registry_with(cuda: type[FakeFactory]) -> FactoryRegistry:
    """Return a registry of the real host and of fake GPUs."""
    registry = FactoryRegistry()
    for registration in default_registry().factories("CPU"):
        registry.register(registration)
    registry.register_class("CUDA", cuda, 200)
    return registry


def use(made: Runtime, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let transfers take devices from *made*."""
    for module in (target_module, parse_device, device_lookup):
        monkeypatch.setattr(module, "default_runtime", lambda: made)


@pytest.fixture
def runtime(monkeypatch: pytest.MonkeyPatch) -> Runtime:
    """A process with two fake GPUs, TensorRT on the second one, and OpenVINO on the host."""
    registry = registry_with(FakeCuda)
    made = Runtime(registry)
    manager = made.manager
    memory = {
        "TENSORRT": DeviceName(device_type="CUDA", index=1),
        "OPENVINO": DeviceName(device_type="CPU", index=0),
        "COREML": DeviceName(device_type="CPU", index=0),
    }
    made.fill("CUDA")
    manager.add_devices(
        [
            Device(
                f"/job:localhost/replica:0/task:0/device:{kind}:0",
                device_class="NPU",
                memory=where.fill(DeviceName(job="localhost", replica=0, task=0)),
            )
            for kind, where in memory.items()
        ]
    )
    use(made, monkeypatch)
    monkeypatch.setattr(made, "fill", lambda *_: None)
    return made


@pytest.mark.parametrize("word", ["cpu", "cpu:0", "CPU:0", "/device:CPU:0"])
def test_the_host_by_any_name_is_where_tensors_of_the_host_are(word: str) -> None:
    value = [torch.ones(1)]
    assert tensors_to_device(value, word) is value


def test_a_torch_device_and_our_own_values_name_the_host() -> None:
    value = [torch.ones(1)]
    for device in (torch.device("cpu"), torch.device("cpu:0"), DeviceName.parse("cpu")):
        assert tensors_to_device(value, device) is value
    assert tensors_to_device(value, devicecore.default_manager().host_cpu) is value


@pytest.mark.parametrize(
    ("word", "torch_device"),
    [
        ("cuda:1", "cuda:1"),
        ("cuda:0", "cuda:0"),
        ("GPU:1", "cuda:1"),
        ("/job:localhost/replica:0/task:0/device:CUDA:1", "cuda:1"),
        ("cuda", "cuda:0"),
        ("tensorrt:0", "cuda:1"),
        ("openvino", "cpu"),
        ("coreml:0", "cpu"),
    ],
)
@pytest.mark.usefixtures("runtime")
def test_a_word_keeps_its_index_and_means_memory(word: str, torch_device: str) -> None:
    assert target_of(word).torch_device == torch.device(torch_device)


@pytest.mark.usefixtures("runtime")
def test_torch_devices_are_held_against_what_is_here() -> None:
    assert target_of(torch.device("cuda:1")).torch_device == torch.device("cuda:1")
    with pytest.raises(UnknownDeviceError):
        target_of(torch.device("cuda:7"))


@pytest.mark.usefixtures("runtime")
def test_without_an_index_the_current_gpu_is_meant(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 1)
    assert target_of("cuda").torch_device == torch.device("cuda:1")
    assert target_of("cuda:0").torch_device == torch.device("cuda:0")


def test_a_device_that_is_gone_is_refused(runtime: Runtime) -> None:
    device = runtime.device("cuda:1")
    device.retire("it was closed")
    with pytest.raises(DeviceGoneError):
        target_of(device)


def test_a_device_without_tensors_of_torch_says_so_for_a_tensor_only() -> None:
    npu = Device("/device:NPU:0", device_class="NPU")
    value = {"a": 1}
    assert tensors_to_device(value, npu) is value
    with pytest.raises(NotLiveError) as caught:
        tensors_to_device({"a": torch.ones(1)}, npu)
    assert "when data['a'] was moved" in caught.value.__notes__


def test_memory_that_no_manager_has_linked() -> None:
    host = DeviceName(device_type="CPU", index=0)
    session = Device("/device:OPENVINO:0", device_class="NPU", memory=host)
    value = [torch.ones(1)]
    assert tensors_to_device(value, session) is value


def test_a_gpu_that_torch_does_not_reach_says_why(runtime: Runtime) -> None:
    name = "/job:localhost/replica:0/task:0/device:CUDA:5"
    runtime.manager.add_devices([Device(name, device_class="GPU", frameworks=("onnx",))])
    target = target_of("cuda:5")
    assert target.torch_device is None
    with pytest.raises((NotLiveError, UnknownDeviceError)) as caught:
        tensors_to_device({"a": [torch.ones(1)]}, "cuda:5")
    assert "when data['a'][0] was moved" in caught.value.__notes__


def test_a_device_of_another_process_is_refused() -> None:
    remote = Device("/job:worker/task:3/device:CPU:0", is_local=False)
    with pytest.raises(NotLiveError, match="in another process"):
        tensors_to_device([torch.ones(1)], remote)


@pytest.mark.parametrize(
    ("word", "error"),
    [
        ("", InvalidDeviceNameError),
        ("gpu 0", InvalidDeviceNameError),
        ("banana", InvalidDeviceNameError),
        ("hpu", InvalidDeviceNameError),
        ("cuda:256x", InvalidDeviceNameError),
        ("meta:300", InvalidDeviceNameError),
        (None, TypeError),
        (True, TypeError),
        ("cpu:1", UnknownDeviceError),
    ],
)
def test_what_is_no_device_raises(word: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        tensors_to_device([1], word)


def test_a_device_that_is_not_here_raises(monkeypatch: pytest.MonkeyPatch) -> None:
    class Absent(FakeCuda):
        answer = Liveness("absent", "opened", reason="no GPU")

    registry = registry_with(Absent)
    use(Runtime(registry), monkeypatch)
    with pytest.raises(NotLiveError, match="no GPU"):
        tensors_to_device([torch.ones(1)], "cuda:1")


def test_meta_has_no_index() -> None:
    assert target_of("meta").torch_device == torch.device("meta")
    assert target_of("meta:0").torch_device == torch.device("meta")


def test_a_handle_is_given_on_request() -> None:
    value = {"x": torch.ones(2)}
    handle = tensors_to_device(value, "cpu", wait=False)
    assert isinstance(handle, PendingTransfer)
    assert handle.done
    assert handle.wait() is value
    moved = tensors_to_device(value, "meta", wait=False).wait()
    assert moved["x"].device.type == "meta"


WITHOUT_TORCH = """
import sys
sys.modules["torch"] = None
from devicecore import tensors_to_device, as_tensor
from devicecore.errors import InvalidDeviceNameError, MissingDependencyError
data = {"x": [1, 2]}
assert tensors_to_device(data, "cuda:1") is data
assert tensors_to_device(data, "cpu") is data
assert tensors_to_device(data, "cuda:1", wait=False).wait() is data
for call, error in ((lambda: tensors_to_device(data, "banana"), InvalidDeviceNameError),
                    (lambda: as_tensor([1], "cpu"), MissingDependencyError)):
    try:
        call()
    except error:
        continue
    raise AssertionError(error)
"""


def test_without_torch_the_data_comes_back_as_it_is() -> None:
    """A device that does not work is no error then; a name that is none still is."""
    subprocess.run([sys.executable, "-c", WITHOUT_TORCH], check=True, timeout=120)


def test_nothing_is_imported_for_data_without_tensors() -> None:
    code = (
        "import sys; from devicecore import tensors_to_device, to_numpy;"
        "tensors_to_device({'x': [1]}, 'cpu');"
        "print({'torch', 'numpy', 'jax', 'onnxruntime'} & set(sys.modules))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True, timeout=120
    )
    assert done.stdout.strip() == "set()"


@pytest.mark.parametrize(
    ("device", "wait", "non_blocking", "sources"),
    [
        ("cuda:0", True, True, {"cpu", "cuda", "xpu"}),
        ("cuda:0", True, False, set()),
        ("xpu:0", False, True, {"cpu", "cuda", "xpu"}),
        ("cpu", True, True, set()),
        ("cpu", False, True, {"cuda", "xpu"}),
        ("cpu", False, False, set()),
        ("mps:0", True, True, set()),
        ("privateuseone:0", True, True, set()),
        ("meta", False, True, set()),
    ],
)
def test_a_copy_is_queued_only_where_that_is_safe(
    device: str, wait: bool, non_blocking: bool, sources: set[str]
) -> None:
    """To the host only with a handle; never on MPS and on what nobody knows, where copies race."""
    target = Target(device, None, torch.device(device))
    request = Request(target, non_blocking=non_blocking, wait=wait)
    assert queueing_sources(request) == sources


def test_a_type_that_only_torch_has(monkeypatch: pytest.MonkeyPatch) -> None:
    """A name that torch was taught for hardware of one's own; here without the hardware."""
    backend: Any = types.ModuleType("torch.privateuseone")
    backend.is_available = lambda: True
    monkeypatch.setattr(torch, "privateuseone", backend, raising=False)
    assert target_of("privateuseone:1").torch_device == torch.device("privateuseone", 1)
    assert target_of("privateuseone").torch_device == torch.device("privateuseone", 0)
    assert not target_of("privateuseone").queues
    backend.is_available = lambda: False
    with pytest.raises(InvalidDeviceNameError):
        target_of("privateuseone:0")
