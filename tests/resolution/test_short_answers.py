"""The functions that programs call with a word: each fault of the program they come from is a test.

The GPUs are fakes; what OpenVINO and the CPU say in the last tests is real.
"""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec
from typing import TYPE_CHECKING

import pytest

from devicecore import (
    Device,
    DeviceOptions,
    FactoryRegistry,
    Liveness,
    default_ledger,
    get_providers,
    is_gpu_available,
    resolve_device,
    torch_available,
)
from devicecore.errors import InvalidDeviceNameError, NotLiveError
from devicecore.ort import SessionSpec
from devicecore.ort.tiny_model import tiny_model
from devicecore.runtime import Runtime
from devicecore.testing import FakeFactory

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

BOTH = ("torch", "onnx")


class Gpus(FakeFactory):
    """Fake GPUs with a provider."""

    frameworks: tuple[str, ...] = BOTH
    provider = ""
    plugin: str | None = None

    def create_devices(self, options: DeviceOptions, name_prefix: str) -> Sequence[Device]:
        devices = super().create_devices(options, name_prefix)
        for device in devices:
            index = str(device.parsed_name.index)
            device.session = SessionSpec(self.provider, {"device_id": index}, library=self.plugin)
        return devices


class Cuda(Gpus):
    device_type, priority, count = "CUDA", 200, 2
    torch_name, provider = "cuda", "CUDAExecutionProvider"


class Tensorrt(Gpus):
    device_type, priority = "TENSORRT", 198
    frameworks, provider = ("onnx",), "TensorrtExecutionProvider"


class Rocm(Gpus):
    device_type, priority = "ROCM", 194
    torch_name, provider = "cuda", "MIGraphXExecutionProvider"


class Mps(FakeFactory):
    device_type, priority = "MPS", 202
    frameworks, torch_name = ("torch",), "mps"


class OpenVinoOnCpu(Gpus):
    device_type, priority, device_class = "OPENVINO", 190, "CPU"
    frameworks, provider = ("onnx",), "OpenVINOExecutionProvider"


class DeadCuda(Cuda):
    """Listed by ONNX Runtime, and not working."""

    answer = Liveness("broken", reason="libcublasLt.so.13 is missing")


class WebGpuPlugin(Gpus):
    device_type, priority = "WEBGPU", 120
    frameworks, provider, plugin = ("onnx",), "WebGpuExecutionProvider", "libwebgpu.so"


def runtime(*factories: type[FakeFactory]) -> Runtime:
    registry = FactoryRegistry("devicecore.discovery:factories")
    for registration in registry.factories():
        if registration.device_type != "CPU":
            registry.unregister(registration)
    for factory in factories:
        local = type(factory.__name__, (factory,), {"__qualname__": f"<locals>.{factory.__name__}"})
        registry.register_class(factory.device_type, local)
    return Runtime(registry)


@pytest.mark.parametrize(
    ("factories", "backend", "word"),
    [
        ((Cuda, Tensorrt), "onnx", "cuda"),
        ((Tensorrt,), "onnx", "tensorrt"),
        ((DeadCuda, Tensorrt), "onnx", "tensorrt"),
        ((DeadCuda,), "onnx", "cpu"),
        ((Mps, Cuda), "torch", "mps"),
        ((Mps, Cuda), "onnx", "cuda"),
        ((Rocm,), "torch", "cuda"),
        ((Rocm,), "onnx", "rocm"),
        ((OpenVinoOnCpu,), "onnx", "cpu"),
        ((), "onnx", "cpu"),
    ],
)
def test_the_word_is_that_of_the_best_live_device(
    factories: tuple[type[FakeFactory], ...], backend: str, word: str
) -> None:
    assert resolve_device(True, backend, runtime=runtime(*factories)) == word
    assert resolve_device(False, backend, runtime=runtime(*factories)) == "cpu"


def test_an_index_is_kept() -> None:
    source = runtime(Cuda)
    source.device("cuda:0").retire("it was unplugged")
    assert resolve_device(True, "onnx", runtime=source) == "cuda:1"


def test_no_gpu_is_in_the_ledger_or_an_error() -> None:
    before = default_ledger().total
    assert resolve_device(True, runtime=runtime()) == "cpu"
    assert default_ledger().total == before + 1
    with pytest.raises(NotLiveError, match="a GPU or NPU is absent; none is live for onnx"):
        resolve_device(True, strict=True, runtime=runtime())
    with pytest.raises(ValueError, match="'jax'"):
        resolve_device(True, "jax", runtime=runtime())


def test_a_cpu_is_no_gpu() -> None:
    assert not is_gpu_available(runtime=runtime(OpenVinoOnCpu))
    assert not is_gpu_available(runtime=runtime(DeadCuda))
    assert is_gpu_available(runtime=runtime(WebGpuPlugin))
    assert is_gpu_available("torch", runtime=runtime(Mps))
    assert not is_gpu_available("onnx", runtime=runtime(Mps))


def test_the_chosen_provider_then_the_cpu_and_no_other() -> None:
    source = runtime(Cuda, Tensorrt)
    exact = {"cudnn_conv_algo_search": "HEURISTIC", "use_tf32": "0"}
    first, last = get_providers("cuda", runtime=source)
    assert first == ("CUDAExecutionProvider", {"device_id": "0", **exact})
    assert last == "CPUExecutionProvider"
    assert get_providers(runtime=source) == [first, last]
    second = ("CUDAExecutionProvider", {"device_id": "1", **exact})
    assert get_providers("cuda:1", runtime=source) == [second, last]
    assert get_providers("cpu", runtime=source) == ["CPUExecutionProvider"]


@pytest.mark.parametrize(
    ("factory", "name", "why"),
    [
        (DeadCuda, "cuda", "libcublasLt"),
        (WebGpuPlugin, "webgpu", "providers= does not reach"),
        (Mps, "mps", "nothing in it is for onnx"),
    ],
)
def test_what_does_not_work_is_the_cpu_and_an_entry(
    factory: type[FakeFactory], name: str, why: str
) -> None:
    source = runtime(factory)
    before = default_ledger().total
    assert get_providers(name, runtime=source) == ["CPUExecutionProvider"]
    assert default_ledger().total == before + 1
    with pytest.raises(NotLiveError, match=why):
        get_providers(name, strict=True, runtime=source)


def test_a_name_that_is_none_is_an_error() -> None:
    with pytest.raises(InvalidDeviceNameError):
        get_providers("cuda:x", runtime=runtime())


def test_a_device_without_a_provider() -> None:
    assert get_providers(Device("/device:NPU:0"), runtime=runtime()) == ["CPUExecutionProvider"]


def test_this_machine() -> None:
    """Real: torch and ONNX Runtime of this environment, which has no GPU or says so."""
    onnxruntime = pytest.importorskip("onnxruntime")
    assert torch_available() is (find_spec("torch") is not None)
    session = onnxruntime.InferenceSession(tiny_model(), providers=get_providers("cpu"))
    assert session.get_providers() == ["CPUExecutionProvider"]


def test_nothing_is_imported_or_made_for_an_answer(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """No framework is imported here, and no folder of engines is made (facts 6 of the seed)."""
    code = """
import sys
from pathlib import Path
from devicecore import config, get_providers, is_gpu_available, resolve_device, torch_available
torch_available(), resolve_device(False), is_gpu_available(), get_providers()
made = sorted(each.name for each in config.load().cache_dir.iterdir())
print(sorted({"torch", "onnxruntime"} & set(sys.modules)), made)
"""
    monkeypatch.setenv("DEVICECORE_CACHE_DIR", str(tmp_path))  # other tests keep engines
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert told.stdout.strip() == "[] ['evidence']"


def test_a_time_out_is_no_absence_and_is_said() -> None:
    """A fake host whose torch takes too long at first, as on a loaded machine."""
    answers = [Liveness("timed_out", reason="importing torch took longer than 60 s")]

    class SlowHost(FakeFactory):
        device_type, device_class, frameworks = "CPU", "CPU", BOTH

        def probe(self, framework: str | None = None, *, deep: bool = False) -> Liveness:
            return answers[0] if deep and answers else super().probe(framework, deep=deep)

    registry = FactoryRegistry()
    registry.register_class("CPU", SlowHost, 60)
    default_ledger().clear()
    assert not torch_available(runtime=Runtime(registry))
    (move,) = default_ledger().moves()
    assert (move.op, move.reason) == ("torch_available", answers[0].reason)
    answers.clear()
    registry.refresh()  # in place of waiting for a while
    assert torch_available(runtime=Runtime(registry))
