"""CUDA on a real GPU: what it finds, that it computes, and how it fails."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from typing import TYPE_CHECKING, Any

import pytest

from devicecore.device_factory import DeviceOptions, default_registry
from devicecore.errors import DeviceGoneError, OutOfMemoryError
from devicecore_factories._torch_device import TorchDevice

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from concurrent.futures import Future

    from devicecore.liveness import Liveness

pytestmark = pytest.mark.hardware

PATIENCE_S = 120.0
LONG = 2_000_000_000  # cycles of the GPU's clock: about a second


def standing(device_type: str, framework: str | None) -> Liveness:
    """Return the liveness of the first factory of a type."""
    registry = default_registry()
    return registry.liveness_of(registry.factories(device_type)[0], framework)


def need(device_type: str, framework: str) -> None:
    """Skip with the factory's own reason where a framework is not live."""
    found = standing(device_type, framework)
    if not found.is_live:
        pytest.skip(f"{device_type} for {framework} is {found.state}: {found.reason}")


def in_child(code: str) -> Any:
    """Run *code* in a process of its own and return what it prints last, as JSON."""
    path = f"import json, sys; sys.path[:] = {sys.path!r}\n"
    run = subprocess.run(
        [sys.executable, "-c", path + code], capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout.splitlines()[-1])


@pytest.fixture
def device() -> Iterator[TorchDevice]:
    """The first GPU, live for torch."""
    need("CUDA", "torch")
    made = default_registry().new_device("CUDA", DeviceOptions(frameworks=("torch",)), "")
    assert isinstance(made, TorchDevice)
    yield made
    made.close()


def affine(device: TorchDevice, x: Any) -> Any:
    return x * 2 + 1


def test_the_gpus_are_those_that_torch_shows_in_its_order() -> None:
    need("CUDA", "torch")
    code = """
import torch
gpus = [torch.cuda.get_device_properties(i) for i in range(torch.cuda.device_count())]
uuids = [str(gpu.uuid).removeprefix("GPU-") for gpu in gpus]
facts = [[uuid, gpu.name, gpu.total_memory] for uuid, gpu in zip(uuids, gpus)]
print(json.dumps(facts))
"""
    devices = default_registry().add_devices(DeviceOptions(frameworks=("torch",)), "")
    found = [
        [
            (device.physical_id or "").removeprefix("GPU-"),
            device.attributes.description.partition(",")[0],
            device.attributes.memory_limit,
        ]
        for device in devices
        if device.device_type == "CUDA"
    ]
    assert found == in_child(code)


def test_listing_opens_no_context_and_leaves_forks_free() -> None:
    """The parent lists, then a forked child computes, which it could not with an opened GPU."""
    need("CUDA", "torch")
    code = """
import os
from devicecore.device_factory import DeviceOptions, default_registry
from devicecore_factories.cuda import CudaFactory
if __name__ == "__main__":
    options = DeviceOptions(frameworks=("torch",))
    device = default_registry().new_device("CUDA", options, "")
    listed = CudaFactory().list_physical_devices()
    opened = [os.path.realpath(f"/proc/self/fd/{fd}") for fd in os.listdir("/proc/self/fd")]
    contexts = [path for path in opened if path.startswith("/dev/nvidia")]
    imported = "torch" in sys.modules
    read, write = os.pipe()
    if os.fork() == 0:
        import torch
        total = device.compute(lambda d: torch.arange(10, device=d.torch_device).sum().item())
        os.write(write, str(total).encode())
        os._exit(0)
    os.close(write)
    print(json.dumps([len(listed) > 0, contexts, imported, os.read(read, 100).decode()]))
"""
    assert in_child(code) == [True, [], False, "45"]


def test_a_kernel_computes_on_the_gpu(device: TorchDevice) -> None:
    torch: Any = pytest.importorskip("torch")
    x = torch.arange(1000, device=device.torch_device)
    result = device.compute(affine, x)
    assert result.device == torch.device("cuda:0")
    assert torch.equal(result.cpu(), torch.arange(1000) * 2 + 1)


def test_a_call_returns_before_the_gpu_is_done(device: TorchDevice) -> None:
    torch: Any = pytest.importorskip("torch")
    stream = torch.cuda.Stream(device.torch_device)
    callers: list[threading.Thread] = []
    calls: list[Future[Any]] = []

    def slow(device: TorchDevice, x: Any) -> Any:
        callers.append(threading.current_thread())
        assert torch.cuda.current_stream(device.torch_device) == stream
        torch.cuda._sleep(LONG)
        return x + 1

    with torch.cuda.stream(stream):
        x = torch.zeros(1000, device=device.torch_device)
        future = device.compute_async(slow, x, done=calls.append)
        assert not future.done()
        assert not stream.query()
    assert not future.cancel()
    result = future.result(PATIENCE_S)
    assert stream.query()
    assert result.sum().item() == 1000
    device.close()
    assert calls == [future]
    assert callers == [threading.current_thread()]


def test_many_calls_are_each_answered_once(device: TorchDevice) -> None:
    torch: Any = pytest.importorskip("torch")
    x = torch.ones(64, 64, device=device.torch_device)
    answers: list[Future[Any]] = []
    futures = [
        device.compute_async(lambda _, n=n: (x * n).sum(), done=answers.append) for n in range(500)
    ]
    values = [future.result(PATIENCE_S).item() for future in futures]
    assert values == [64 * 64 * n for n in range(500)]
    device.close()
    assert len(answers) == len(set(map(id, answers))) == 500


def test_too_little_memory_is_told_and_survived(device: TorchDevice) -> None:
    too_much = device.attributes.memory_limit * 2
    with pytest.raises(OutOfMemoryError) as caught:
        device.allocate((too_much,), "uint8")
    assert caught.value.device == device.name
    with pytest.raises(OutOfMemoryError):
        device.compute(lambda d: d.allocate((too_much,), "uint8"))
    assert device.compute(lambda d: d.allocate((3, 4), "float16")).shape == (3, 4)


def test_memory_is_counted(device: TorchDevice) -> None:
    before = device.allocate((1,), "uint8")
    stats = device.memory_stats()
    block = device.allocate((64 << 20,), "uint8")
    after = device.memory_stats()
    assert after["allocated"] - stats["allocated"] == 64 << 20
    assert 0 < after["free"] <= after["total"] <= device.attributes.memory_limit
    del before, block


def test_a_memory_limit_holds() -> None:
    need("CUDA", "torch")
    code = """
from devicecore.device_factory import DeviceOptions, default_registry
from devicecore.errors import OutOfMemoryError
options = DeviceOptions(frameworks=("torch",), memory_limit=1 << 30)
device = default_registry().new_device("CUDA", options, "")
fits = device.allocate((1 << 28,), "uint8")
try:
    device.allocate((1 << 31,), "uint8")
    print(json.dumps("it got more"))
except OutOfMemoryError as error:
    print(json.dumps(error.device))
"""
    assert in_child(code) == "/device:CUDA:0"


def test_after_a_fork_the_opened_gpu_is_gone_in_the_child(
    device: TorchDevice, in_fork: Callable[[Callable[[], Any]], Any]
) -> None:
    device.allocate((1,), "uint8")

    def use() -> list[str]:
        reasons = []
        try:
            device.compute(affine, 1)
        except DeviceGoneError as error:
            reasons.append(error.reason)
        late = device.compute_async(affine, 1).exception(PATIENCE_S)
        reasons.append(getattr(late, "reason", "it ran"))
        return reasons

    assert in_fork(use) == ["it was opened before this process was forked"] * 2
    assert device.allocate((2,), "uint8").numel() == 2


def test_a_late_error_takes_the_gpu_and_is_not_retried() -> None:
    """An index out of bounds stops the GPU for its whole process, hence one of its own."""
    need("CUDA", "torch")
    code = """
from devicecore.device_factory import DeviceOptions, default_registry
import torch
options = DeviceOptions(frameworks=("torch",))
device = default_registry().new_device("CUDA", options, "")
x = torch.arange(4, device=device.torch_device)
runs, calls = [], []
def kernel(d):
    runs.append(1)
    return x[torch.tensor([9], device=d.torch_device)]
error = device.compute_async(kernel, done=calls.append).exception(120)
after = device.compute_async(lambda d: 1).exception(120)
again = default_registry().new_device("CUDA", options, "")
names = [type(each).__name__ for each in (error, after)]
print(json.dumps([names, len(runs), len(calls), bool(device.gone), bool(again.gone)]))
"""
    gone = ["DeviceGoneError", "DeviceGoneError"]
    assert in_child(code) == [gone, 1, 1, True, True]


def test_a_model_runs_on_the_gpu() -> None:
    need("CUDA", "onnx")
    numpy = pytest.importorskip("numpy")
    onnx = pytest.importorskip("devicecore.onnx")
    from devicecore.ort.tiny_model import (
        INPUT,
        INPUT_VALUES,
        OUTPUT,
        expected_values,
        tiny_model,
    )

    device = default_registry().new_device("CUDA", DeviceOptions(frameworks=("onnx",)), "")
    model = onnx.OnnxModel(tiny_model())
    feeds = {INPUT: numpy.array(INPUT_VALUES, numpy.float32).reshape(2, 4)}
    result = device.compute(model, feeds)[OUTPUT]
    assert tuple(result.ravel()) == expected_values()
    session = model.session(device)
    assert session.live_nodes == session.total_nodes > 0
    device.close()


@pytest.mark.parametrize("device_type", ["CUDA", "TENSORRT"])
def test_what_is_not_live_says_why(device_type: str) -> None:
    if standing("CUDA", None).state == "absent":
        pytest.skip("there is no NVIDIA GPU here")
    found = standing(device_type, "onnx")
    assert found.is_live or found.reason
    assert found.state != "timed_out"
