"""CUDA's current device, on a runtime that is a fake: `tests/hardware` has the real one."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from devicecore import Device
from devicecore.frameworks.base.cuda_current import TorchCuda
from devicecore.frameworks.cupy import CupyCuda
from tests.scope.conftest import in_child


class FakeCuda:
    """What torch says of CUDA on a machine with two GPUs."""

    def __init__(self) -> None:
        self.now = 0
        self.opened = False
        self.calls: list[int] = []

    def is_available(self) -> bool:
        return True

    def is_initialized(self) -> bool:
        return self.opened

    def current_device(self) -> int:
        assert self.opened
        return self.now

    def set_device(self, ordinal: int) -> None:
        self.opened = True
        self.now = ordinal
        self.calls.append(ordinal)


@pytest.fixture
def cuda() -> FakeCuda:
    return FakeCuda()


@pytest.fixture
def adapter(cuda: FakeCuda) -> TorchCuda:
    return TorchCuda(SimpleNamespace(cuda=cuda))  # type: ignore[arg-type]


def gpu(index: int, **facts: Any) -> Device:
    return Device(f"/device:CUDA:{index}", device_class="GPU", **facts)


def test_which_devices_have_an_ordinal(adapter: TorchCuda) -> None:
    assert adapter.place_of(gpu(1, torch_device="cuda:1")) == 1
    assert adapter.place_of(gpu(1)) == 1  # live for ONNX Runtime only
    assert adapter.place_of(Device("/device:ROCM:1", torch_device="cuda:1")) == 1
    assert adapter.place_of(Device("/device:CPU:0", torch_device="cpu")) is None
    assert adapter.place_of(gpu(1, is_local=False)) is None
    session = Device("/device:TENSORRT:1", device_class="GPU")
    assert adapter.place_of(session) is None
    session.link_memory(gpu(1, torch_device="cuda:1"))
    assert adapter.place_of(session) == 1


def test_the_first_gpu_of_a_closed_cuda_needs_nothing(adapter: TorchCuda, cuda: FakeCuda) -> None:
    saved = adapter.enter(0)
    assert cuda.calls == []
    cuda.set_device(1)  # somebody else, inside
    adapter.leave(saved)
    assert cuda.calls == [1, 0]


def test_there_and_back(adapter: TorchCuda, cuda: FakeCuda) -> None:
    outer = adapter.enter(1)
    inner = adapter.enter(1)
    adapter.leave(inner)
    assert cuda.calls == [1]
    assert adapter.current_index("CUDA") == 1
    adapter.leave(outer)
    assert cuda.calls == [1, 0]


def test_out_of_order(adapter: TorchCuda, cuda: FakeCuda) -> None:
    lower = adapter.enter(1)
    upper = adapter.join(adapter.enter(0), lower)
    assert cuda.now == 0
    adapter.leave(upper)
    assert cuda.now == 0


def test_a_forked_child_does_not_touch_it(adapter: TorchCuda, cuda: FakeCuda) -> None:
    adapter.leave_in_child(adapter.enter(1))
    assert cuda.calls == [1]


def test_an_index_is_known_where_cuda_is_open(adapter: TorchCuda, cuda: FakeCuda) -> None:
    assert adapter.current_index("CUDA") is None
    cuda.set_device(1)
    assert adapter.current_index("CUDA") == adapter.current_index("ROCM") == 1
    assert adapter.current_index("MPS") is None


def test_cupy_sets_the_same_runtime() -> None:
    cuda = FakeCuda()
    cuda.opened = True
    runtime = SimpleNamespace(
        getDevice=cuda.current_device, setDevice=cuda.set_device, getDeviceCount=lambda: 2
    )
    adapter = CupyCuda(SimpleNamespace(cuda=SimpleNamespace(runtime=runtime)))
    assert adapter.place_of(gpu(1)) == 1
    saved = adapter.enter(1)
    assert cuda.now == 1
    adapter.leave(saved)
    assert cuda.calls == [1, 0]


CUPY_WITHOUT_A_DRIVER = """
import types
from importlib.machinery import ModuleSpec
from devicecore import Device, current_device, device_scope

def fails(*_):
    raise OSError("cudaErrorInsufficientDriver")

runtime = types.SimpleNamespace(getDevice=fails, setDevice=fails, getDeviceCount=fails)
cupy = types.ModuleType("cupy")
cupy.__spec__ = ModuleSpec("cupy", None)
cupy.ndarray = type("ndarray", (), {})
cupy.cuda = types.SimpleNamespace(runtime=runtime)
sys.modules["cupy"] = cupy
gpu = Device("/device:CUDA:0", device_class="GPU")
seen = []
with device_scope("cuda", fallback="cpu") as device:
    seen.append(device.device_type)
with device_scope(gpu):
    seen.append(current_device().name[-6:])
try:
    with device_scope("cuda:99"): pass
except (LookupError, RuntimeError) as error:
    seen.append(type(error).__module__)
try:
    with device_scope(gpu, frameworks="cupy"): pass
except RuntimeError as error:
    seen.append(str(error).splitlines()[0])
print(json.dumps(seen))
"""


def test_cupy_without_a_driver() -> None:
    """Its runtime, here a fake, raises whatever is asked."""
    fallen_back, inside, unknown, named = in_child(CUPY_WITHOUT_A_DRIVER)
    assert (fallen_back, inside, unknown) == ("CPU", "CUDA:0", "devicecore.errors")
    assert "CuPy finds no driver, or no GPU" in named
