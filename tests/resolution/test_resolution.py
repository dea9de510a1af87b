"""Which device a program gets, and why not a better one."""

from __future__ import annotations

import pytest

from devicecore import Device, DeviceName, FactoryRegistry, Liveness, resolve
from devicecore.errors import InvalidDeviceNameError, NotLiveError, UnknownDeviceError
from devicecore.resolution import Rejected, Resolution
from devicecore.runtime import Runtime
from devicecore.testing import FakeFactory


def runtime() -> Runtime:
    """A host with a dead MPS, a live CUDA for torch only, and a WEBGPU taken only when named."""
    registry = FactoryRegistry("devicecore.discovery:factories")
    for registration in registry.factories():
        if registration.device_type not in ("CPU", "WEBGPU"):
            registry.unregister(registration)

    class Mps(FakeFactory):
        priority = 202
        frameworks = ("torch", "onnx")
        answer = Liveness("absent", reason="there is no Apple GPU", fix="buy one")

    class Cuda(FakeFactory):
        device_type = "CUDA"
        priority = 200
        count = 2
        frameworks = ("torch",)

    registry.register_class("MPS", Mps)
    registry.register_class("CUDA", Cuda)
    return Runtime(registry)


def test_auto_takes_the_best_live_one_and_keeps_the_reasons() -> None:
    found = resolve("auto", framework="torch", runtime=runtime())
    assert found.device.name.endswith("CUDA:0")
    assert [(each.name, each.state, each.fix) for each in found.rejected] == [
        ("MPS", "absent", "buy one")
    ]


def test_a_name_that_says_nothing_is_auto() -> None:
    for request in ("", "/", DeviceName()):
        found = resolve(request, framework="torch", runtime=runtime())
        assert found.device.name.endswith("CUDA:0")
        assert "asked for" not in found.why


def test_auto_asks_the_frameworks_apart() -> None:
    found = resolve("auto", framework="onnx", runtime=runtime())
    assert found.device.device_type == "CPU"
    rejected = {each.name: each.reason for each in found.rejected}
    assert rejected["CUDA"] == "nothing in it is for onnx"


def test_a_class_of_which_a_live_type_has_no_device() -> None:
    registry = FactoryRegistry()

    class Plugin(FakeFactory):
        priority = 190
        device_class = "CPU"

    class Build(FakeFactory):
        priority = 188
        answer = Liveness("missing", reason="built without it")

    registry.register_class("OPENVINO", Plugin)
    registry.register_class("OPENVINO", Build)
    with pytest.raises(NotLiveError) as caught:
        resolve("GPU", runtime=Runtime(registry))
    assert caught.value.reason == "OPENVINO: it has no device of class GPU here"


def test_a_request_is_never_replaced() -> None:
    with pytest.raises(NotLiveError, match="no Apple GPU"):
        resolve("mps", runtime=runtime())
    with pytest.raises(UnknownDeviceError):
        resolve("cuda:9", framework="torch", runtime=runtime())
    with pytest.raises(InvalidDeviceNameError):
        resolve("cuda:-1", runtime=runtime())


def test_an_index_is_kept() -> None:
    assert resolve("cuda:1", framework="torch", runtime=runtime()).device.name.endswith("CUDA:1")


def test_a_family() -> None:
    assert resolve("gpu:1", framework="torch", runtime=runtime()).device.name.endswith("CUDA:1")
    with pytest.raises(NotLiveError, match="class NPU"):
        resolve("npu", runtime=runtime())


def test_prefer_goes_through_the_users_list_only() -> None:
    found = resolve(policy="prefer:mps,cuda:1,cpu", framework="torch", runtime=runtime())
    assert found.device.name.endswith("CUDA:1")
    assert [each.name for each in found.rejected] == ["mps"]
    with pytest.raises(NotLiveError):
        resolve(policy="prefer:mps", runtime=runtime())


def test_require_and_conflicts() -> None:
    assert resolve(policy="require:cpu", runtime=runtime()).device.device_type == "CPU"
    with pytest.raises(ValueError, match="both name devices"):
        resolve("cuda", policy="require:cpu", runtime=runtime())
    with pytest.raises(ValueError, match="invalid policy"):
        resolve(policy="cheapest", runtime=runtime())


def test_a_device_is_taken_as_it_is() -> None:
    device = Device("/device:ACME:0")
    assert resolve(device).device is device


REASONS = (
    Rejected("MPS", "absent", "MPS exists on macOS only"),
    Rejected("DML", "absent", "DmlExecutionProvider exists on win32 only"),
    Rejected("CUDA", "absent", "there is no NVIDIA GPU here"),
    Rejected("TENSORRT", "absent", "there is no NVIDIA GPU here"),
    Rejected("XPU", "absent", "there is no Intel GPU here"),
)
FAULTS = (
    Rejected("CUDA", "broken", "libcuda.so.1 is missing", "pip install a && pip install b"),
    Rejected("TENSORRT", "broken", "libcuda.so.1 is missing", "pip install c; install the driver"),
    Rejected("OPENVINO", "missing", "a is not installed", "python -m pip install a"),
)


def test_a_person_is_told_each_cause_once_and_no_other_systems() -> None:
    device = Device("/device:CPU:0")
    used = "Using CPU:0"
    first, *causes = Resolution(device, "it is", REASONS).explain().splitlines()
    assert first.startswith(used)
    assert causes == ["Nothing better is here: there is no NVIDIA GPU and no Intel GPU."]
    first, *causes = Resolution(device, "it is", REASONS + FAULTS).explain().splitlines()
    assert [cause.partition(":")[0] for cause in causes] == [
        "Not CUDA or TENSORRT",
        "Not OPENVINO",
        "Nothing better is here",
    ]
    for rejected in ((), REASONS[:2]):
        told = Resolution(device, "cpu was asked for", rejected).explain().splitlines()
        assert told[1:] == ["Why: cpu was asked for."]


def test_a_frozen_program_is_not_told_of_pip(monkeypatch: pytest.MonkeyPatch) -> None:
    found = Resolution(Device("/device:CPU:0"), "it is", FAULTS)
    assert "pip" in found.explain()
    monkeypatch.setattr("sys.frozen", True, raising=False)
    assert "pip" not in found.explain()
    assert "install the driver" in found.explain()
