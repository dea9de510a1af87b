"""What each factory answers, from what it sees.

The torch and ONNX Runtime of this environment are asked as they are. Builds, drivers and GPUs that
are not here are put in place by changing what the readers return; `tests/hardware` asks real ones.
"""

from __future__ import annotations

import ctypes
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from devicecore.errors import NotLiveError
from devicecore.liveness import Liveness, PhysicalDevice
from devicecore.liveness import hardware as _hardware
from devicecore.liveness.causes import Refusal, is_of_another_system, lacking
from devicecore.ort import EpDevice, SessionSpec
from devicecore_factories import _nvidia, _session_probe, _torch_probe, openvino
from devicecore_factories._session_probe import Offer
from devicecore_factories.coreml import CoreMLFactory
from devicecore_factories.cuda import CudaFactory
from devicecore_factories.mps import MpsFactory
from devicecore_factories.rocm import RocmFactory
from devicecore_factories.tensorrt import TensorRTFactory
from devicecore_factories.xpu import XpuFactory

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from devicecore_factories._backend import BackendFactory

UNTRIED = Liveness("untried", reason="made up")
LIVE = Liveness("live", "ran", reason="made up")


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Put an empty tree in place of the system's files: no GPU is seen, and none ruled out."""
    monkeypatch.setattr(_hardware, "ROOT", tmp_path)
    return tmp_path


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch) -> None:
    """Put NVIDIA's driver in place, as far as looking goes."""
    monkeypatch.setattr(_nvidia, "driver_metadata", lambda: UNTRIED)


@pytest.fixture
def torch_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Return a function that puts a torch with another ``version.py`` in place."""

    def write(text: str) -> None:
        folder = tmp_path / "torch"
        folder.mkdir()
        (folder / "version.py").write_text(text)
        monkeypatch.setattr(_torch_probe, "package_dir", lambda module: folder)

    return write


VERSION_FILE = """\
from typing import Optional

__all__ = ['__version__', 'debug', 'cuda', 'git_version', 'hip', 'rocm', 'xpu']
__version__ = '{version}'
debug = False
cuda: Optional[str] = {cuda}
git_version = 'cf30153c4c131c8164ee7798e5022d810682e2cb'
hip: Optional[str] = {hip}
rocm: Optional[str] = None
xpu: Optional[str] = {xpu}
"""


def version_file(version: str, **built_for: str) -> str:
    """Return the text of torch's own file, as its builds have it."""
    facts = {name: repr(built_for.get(name)) for name in ("cuda", "hip", "xpu")}
    return VERSION_FILE.format(version=version, **facts)


# --- what torch is ------------------------------------------------------------------------------


def test_the_installed_torch_is_read_without_importing_it() -> None:
    torch = pytest.importorskip("torch")
    build = _torch_probe.torch_build()
    assert build is not None
    assert build.version == torch.__version__
    assert build.cuda == (torch.version.cuda or "")
    assert build.hip == (torch.version.hip or "")


def test_cuda_for_the_installed_torch(root: Path) -> None:
    """Real: the torch for CPUs that the tests install was built without CUDA."""
    build = _torch_probe.torch_build()
    if build is None or build.cuda:
        pytest.skip("the installed torch is not one without CUDA")
    answer = CudaFactory().probe("torch")
    assert answer.state == "missing"
    assert answer.reason == f"torch {build.version} was built without CUDA"
    assert answer.fix == "pip uninstall -y torch && pip install torch"


@pytest.mark.parametrize(
    ("factory", "built_for", "state"),
    [
        (CudaFactory, {"cuda": "13.0"}, "untried"),
        (CudaFactory, {"hip": "7.1"}, "missing"),
        (RocmFactory, {"hip": "7.1"}, "untried"),
        (RocmFactory, {"cuda": "13.0"}, "missing"),
        (XpuFactory, {"xpu": "20250302"}, "untried"),
        (XpuFactory, {}, "missing"),
    ],
)
@pytest.mark.usefixtures("root", "driver")
def test_a_build_of_torch_serves_one_backend(
    torch_file: Callable[[str], None],
    factory: type[BackendFactory],
    built_for: dict[str, str],
    state: str,
) -> None:
    torch_file(version_file("2.14.1", **built_for))
    answer = factory().probe("torch")
    assert answer.state == state
    assert answer.reason


def test_without_torch_the_command_that_brings_it_is_told(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_torch_probe, "package_dir", lambda module: None)
    for factory in (CudaFactory(), RocmFactory(), XpuFactory()):
        answer = factory.probe("torch")
        assert (answer.state, answer.reason) == ("missing", "torch is not installed")
        assert answer.fix == "pip install 'devicecore[torch]'"


# --- hardware, driver, system -------------------------------------------------------------------


def test_a_gpu_without_its_driver_misses_it(
    root: Path, monkeypatch: pytest.MonkeyPatch, torch_file: Callable[[str], None]
) -> None:
    torch_file(version_file("2.14.1+cu130", cuda="13.0"))
    (root / "dev").mkdir()
    (root / "dev/nvidia0").touch()

    def refuse(name: str) -> Any:
        raise OSError(name)

    monkeypatch.setattr(ctypes, "CDLL", refuse)
    answer = CudaFactory().probe("torch")
    assert answer.state == "missing"
    assert "driver is not there" in answer.reason


def test_without_a_gpu_the_devices_are_absent_and_nothing_need_be_installed(root: Path) -> None:
    bridge = root / "sys/bus/pci/devices/0000:00:00.0"
    bridge.mkdir(parents=True)
    (bridge / "vendor").write_text("0x8086\n")
    (bridge / "class").write_text("0x060000\n")
    for factory in (CudaFactory(), TensorRTFactory(), RocmFactory(), XpuFactory()):
        answer = factory.probe()
        assert (answer.state, answer.fix) == ("absent", "")
        assert answer.reason == f"there is no {factory.hardware} here"
        # What one line on all of them reads from the wording.
        assert lacking(Refusal("X", answer.state, answer.reason)) == f"no {factory.hardware}"


@pytest.mark.parametrize(
    ("factory", "system"),
    [
        (CudaFactory, "darwin"),
        (TensorRTFactory, "darwin"),
        (RocmFactory, "darwin"),
        (XpuFactory, "darwin"),
        (MpsFactory, "linux"),
        (MpsFactory, "win32"),
        (CoreMLFactory, "linux"),
    ],
)
def test_a_backend_of_another_system_is_absent_before_anything_is_read(
    monkeypatch: pytest.MonkeyPatch, factory: type[BackendFactory], system: str
) -> None:
    def read(*_: object) -> Any:
        pytest.fail("it looked further")

    monkeypatch.setattr(_hardware, "SYSTEM", system)
    monkeypatch.setattr(factory, "look", read)
    monkeypatch.setattr(factory, "is_here", read)
    for deep in (False, True):
        answer = factory().probe(deep=deep)
        assert answer.state == "absent"
        assert answer.reason.startswith(f"{factory.device_type} exists on ")
        assert is_of_another_system(Refusal("X", answer.state, answer.reason))


# --- trying out ---------------------------------------------------------------------------------


def test_a_deep_probe_of_torch_really_computes() -> None:
    """Real, with the CPU in the place of a GPU."""
    torch = pytest.importorskip("torch")
    gpu = PhysicalDevice("CPU", 0)
    answer = _torch_probe.try_torch("cpu:{}", lambda module: [gpu] if module is torch.cpu else [])
    assert answer.is_live
    assert answer.reason == f"torch {torch.__version__} computed on cpu:0"


def test_a_gpu_that_torch_cannot_use_is_broken_with_its_words() -> None:
    torch = pytest.importorskip("torch")
    if torch.cuda.is_available():
        pytest.skip("this machine's GPU can be used")
    answer = _torch_probe.try_torch("cuda:{}", lambda _: [PhysicalDevice("CUDA", 0)])
    assert answer.state == "broken"
    assert "CUDA" in answer.reason or "NVIDIA" in answer.reason
    assert "Traceback" in answer.detail


def test_a_gpu_that_computes_wrong_results_is_broken(monkeypatch: pytest.MonkeyPatch) -> None:
    torch = pytest.importorskip("torch")
    monkeypatch.setattr(torch.Tensor, "to", lambda self, place: self + 1)  # it is off by one
    answer = _torch_probe.try_torch("cpu:{}", lambda _: [PhysicalDevice("CPU", 0)])
    assert (answer.state, answer.evidence) == ("broken", "ran")
    assert answer.reason == "torch computes wrong results on cpu:0"


def properties(name: str, **facts: Any) -> SimpleNamespace:
    """Return what torch says of a GPU."""
    return SimpleNamespace(name=name, total_memory=16 << 30, **facts)


def torch_module(*gpus: SimpleNamespace) -> SimpleNamespace:
    """Return a stand-in for torch's module of a backend that shows *gpus*."""
    return SimpleNamespace(
        device_count=lambda: len(gpus), get_device_properties=lambda index: gpus[index]
    )


def intel_gpu(root: Path, address: str, device: int) -> None:
    folder = root / "sys/bus/pci/devices" / address
    folder.mkdir(parents=True)
    for name, value in (("vendor", 0x8086), ("class", 0x030000), ("device", device)):
        (folder / name).write_text(f"{value:#06x}\n")
    (folder / "numa_node").write_text("-1\n")


def test_xpu_finds_the_place_of_each_gpu_by_its_chip(root: Path) -> None:
    """torch counts the large GPU first, the bus the one inside the processor. Made up."""
    intel_gpu(root, "0000:00:02.0", 0x7D55)
    intel_gpu(root, "0000:03:00.0", 0x56A0)
    module = torch_module(
        properties("Arc A770", device_id=0x56A0), properties("Arc Graphics", device_id=0x7D55)
    )
    gpus = XpuFactory()._gpus(module)
    assert [(gpu.index, gpu.description, gpu.physical_id) for gpu in gpus] == [
        (0, "Arc A770", "0000:03:00.0"),
        (1, "Arc Graphics", "0000:00:02.0"),
    ]
    assert XpuFactory().is_here() is True
    old = XpuFactory()._gpus(torch_module(properties("Arc A770")))
    assert [(gpu.description, gpu.physical_id) for gpu in old] == [("Arc A770", None)]


@pytest.mark.parametrize("gpus_of", [XpuFactory()._gpus, RocmFactory()._torch_gpus])
def test_gpus_that_torch_does_not_show_miss_their_driver(
    root: Path, gpus_of: Callable[[Any], Any]
) -> None:
    with pytest.raises(NotLiveError, match="torch shows no") as caught:
        gpus_of(torch_module())
    assert caught.value.state == "missing"
    assert "driver" in caught.value.fix


def test_rocm_joins_what_torch_and_the_kernel_driver_say(root: Path) -> None:
    """The files of one GPU of AMD, made up after the kernel's documentation."""
    node = root / "sys/class/kfd/kfd/topology/nodes/1"
    node.mkdir(parents=True)
    (node / "properties").write_text("simd_count 1216\nlocation_id 9728\ndomain 0\n")
    (gpu,) = RocmFactory()._torch_gpus(torch_module(properties("AMD Instinct MI300X")))
    assert (gpu.device_type, gpu.description) == ("ROCM", "AMD Instinct MI300X")
    assert (gpu.physical_id, gpu.memory_bytes) == ("0000:26:00.0", 16 << 30)
    two = torch_module(properties("A"), properties("B"))
    assert [gpu.physical_id for gpu in RocmFactory()._torch_gpus(two)] == [None, None]


# --- plug-ins -----------------------------------------------------------------------------------


def ep_device(hardware: str, index: int = 0, **facts: str) -> EpDevice:
    return EpDevice("cuda_ep", index, hardware, "NVIDIA", metadata=facts, library="/plugin.so")


def offer(monkeypatch: pytest.MonkeyPatch, *devices: EpDevice) -> Offer:
    """Return a plug-in that offers *devices*."""
    monkeypatch.setattr(Offer, "ep_devices", lambda self: devices)
    return Offer("cuda_ep", plugin=True)


def test_a_plugins_devices_carry_their_session(monkeypatch: pytest.MonkeyPatch, root: Path) -> None:
    offered = offer(monkeypatch, ep_device("CPU"), ep_device("GPU", 1, pci_bus_id="3B:00.0"))
    (gpu,) = _session_probe.plugin_gpus("WEBGPU", offered, ["GPU"])
    assert (gpu.index, gpu.physical_id, gpu.device_class) == (0, "0000:3b:00.0", "GPU")
    assert _session_probe.session_of(gpu) == SessionSpec("cuda_ep", {}, 1, "/plugin.so")
    (host,) = _session_probe.plugin_gpus("OPENVINO", offered, ["CPU"])
    assert (host.physical_id, host.device_class) == ("cpu", "CPU")


def test_a_plugin_that_offers_other_hardware_is_absent(monkeypatch: pytest.MonkeyPatch) -> None:
    offered = offer(monkeypatch, ep_device("CPU"))
    with pytest.raises(NotLiveError, match="it offers only the CPU of NVIDIA") as caught:
        _session_probe.plugin_gpus("WEBGPU", offered, ["GPU"])
    assert caught.value.state == "absent"


GPUS = [
    PhysicalDevice("CUDA", 0, "GPU-a", details={"pci_bus_id": "0000:5e:00.0"}),
    PhysicalDevice("CUDA", 1, "GPU-b", details={"pci_bus_id": "0000:3b:00.0"}),
]


def test_a_plugins_devices_are_joined_to_cuda_by_their_place_on_the_bus(
    monkeypatch: pytest.MonkeyPatch, root: Path
) -> None:
    offered = offer(monkeypatch, ep_device("GPU", 0, pci_bus_id="0000:3b:00.0"))
    found = _session_probe.on_gpus(GPUS, _session_probe.plugin_gpus("CUDA", offered, ["GPU"]))
    assert [gpu.physical_id for gpu in found] == ["GPU-b"]


def test_a_plugins_devices_without_a_place_are_joined_by_their_order(
    monkeypatch: pytest.MonkeyPatch, root: Path
) -> None:
    offered = offer(monkeypatch, ep_device("GPU", 0), ep_device("GPU", 1))
    found = _session_probe.on_gpus(GPUS, _session_probe.plugin_gpus("CUDA", offered, ["GPU"]))
    sessions = [_session_probe.session_of(gpu).ep_device_index for gpu in found]
    assert [(gpu.physical_id, index) for gpu, index in zip(found, sessions, strict=True)] == [
        ("GPU-a", 0),
        ("GPU-b", 1),
    ]


def test_the_next_offer_is_tried_where_one_does_not_work(monkeypatch: pytest.MonkeyPatch) -> None:
    offers = (Offer("CUDAExecutionProvider"), Offer("cuda_ep", plugin=True))
    answers = {offers[0]: Liveness("broken", reason="libraries"), offers[1]: UNTRIED}
    monkeypatch.setattr(Offer, "look", lambda self: answers[self])
    monkeypatch.setattr(_session_probe, "probe_provider", lambda spec: LIVE)
    spec = SessionSpec("cuda_ep", {}, 0)
    gpus = [_session_probe.with_session(GPUS[0], spec)]
    assert _session_probe.try_offers(offers, lambda _: gpus).is_live
    answers[offers[1]] = Liveness("missing", reason="not installed")
    assert _session_probe.try_offers(offers, lambda _: gpus).reason == "libraries"


def test_openvino_in_a_build_keeps_the_kinds_that_work(monkeypatch: pytest.MonkeyPatch) -> None:
    """The build itself was run by hand; here its answers are made up."""
    monkeypatch.setattr(_hardware, "pci_gpus", lambda *_, **__: [])

    def probe(spec: SessionSpec) -> Liveness:
        return Liveness("broken", reason="no NPU") if spec.options["device_type"] == "NPU" else LIVE

    monkeypatch.setattr(openvino, "probe_provider", probe)
    answer = openvino.OpenVINOInTreeFactory().try_out("onnx")
    assert [(gpu.index, gpu.device_class) for gpu in answer.devices] == [(0, "GPU"), (1, "CPU")]
    assert answer.devices[1].physical_id == "cpu"
    monkeypatch.setattr(openvino, "probe_provider", lambda spec: Liveness("broken", reason="why"))
    assert openvino.OpenVINOInTreeFactory().try_out("onnx").reason == "why"
