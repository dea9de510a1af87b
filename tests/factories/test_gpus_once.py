"""A GPU counts once: under WSL, and where OpenVINO has several.

The files are made up after WSL's and Linux' own; drivers and providers are stand-ins.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from devicecore.device import Device
from devicecore.device_mgr import DeviceMgr
from devicecore.errors import NotLiveError
from devicecore.liveness import Liveness, PhysicalDevice
from devicecore.liveness import hardware as _hardware
from devicecore.ort import EpDevice, SessionSpec
from devicecore_factories import _nvidia, _session_probe, openvino
from devicecore_factories._session_probe import Offer
from devicecore_factories.openvino import OpenVINOInTreeFactory
from devicecore_factories.xpu import XpuFactory

if TYPE_CHECKING:
    from pathlib import Path

MICROSOFT, INTEL = 0x1414, 0x8086
LIVE = Liveness("live", "ran")
UUID = "GPU-5a2e9a0c-0000-0000-0000-000000000001"


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(_hardware, "ROOT", tmp_path)
    return tmp_path


def on_bus(root: Path, address: str, vendor: int, device: int = 0x008E) -> None:
    folder = root / "sys/bus/pci/devices" / address
    folder.mkdir(parents=True)
    for name, value in (("vendor", vendor), ("class", 0x030200), ("device", device)):
        (folder / name).write_text(f"{value:#06x}\n")


def wsl(root: Path, *addresses: str) -> None:
    """Make *root* that of WSL; it shows a GPU at each of *addresses*, as Microsoft's."""
    (root / "dev").mkdir()
    (root / "dev/dxg").touch()
    for address in addresses:
        on_bus(root, address, MICROSOFT)


def nvidia(monkeypatch: pytest.MonkeyPatch, *gpus: PhysicalDevice) -> None:
    """Let NVIDIA's driver show *gpus*; without any it is not there."""

    def driver() -> Any:
        if not gpus:
            raise NotLiveError("CUDA", "missing", "no driver")
        return SimpleNamespace(gpus=lambda: list(gpus))

    monkeypatch.setattr(_nvidia, "CudaDriver", driver)


def webgpu_gpu(monkeypatch: pytest.MonkeyPatch, **facts: str) -> PhysicalDevice:
    """Return the GPU of a plug-in that knows *facts* of it."""
    found = EpDevice("WebGpuExecutionProvider", 0, "GPU", "Microsoft", hardware_metadata=facts)
    monkeypatch.setattr(Offer, "ep_devices", lambda self: (found,))
    offer = Offer("WebGpuExecutionProvider", plugin=True)
    (gpu,) = _session_probe.plugin_gpus("WEBGPU", offer, ["GPU"])
    return gpu


def count(*gpus: PhysicalDevice) -> int:
    devices = [
        Device(
            f"/device:{gpu.device_type}:{gpu.index}",
            device_class=gpu.device_class,
            physical_id=gpu.physical_id,
        )
        for gpu in gpus
    ]
    return len(DeviceMgr(devices).devices_by_type("GPU"))


CUDA = PhysicalDevice("CUDA", 0, UUID, details={"pci_bus_id": "0000:01:00.0"})


@pytest.mark.parametrize("shown", [("cdd4:00:00.0",), ()], ids=["shown", "old WSL"])
@pytest.mark.parametrize(
    "facts",
    [{}, {"pci_bus_id": "cdd4:00:00.0"}, {"pci_bus_id": "0000:01:00.0"}],
    ids=["no address", "WSL's address", "the real address"],
)
def test_one_nvidia_gpu_under_wsl_counts_once(
    root: Path, monkeypatch: pytest.MonkeyPatch, shown: tuple[str, ...], facts: dict[str, str]
) -> None:
    wsl(root, *shown)
    nvidia(monkeypatch, CUDA)
    assert count(CUDA, webgpu_gpu(monkeypatch, **facts)) == 1


def test_one_intel_gpu_under_wsl_counts_once(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wsl(root, "cdd4:00:00.0")
    nvidia(monkeypatch)
    properties = SimpleNamespace(name="Arc A770", total_memory=16 << 30)
    torch = SimpleNamespace(device_count=lambda: 1, get_device_properties=lambda _: properties)
    monkeypatch.setattr(openvino, "probe_provider", lambda _: LIVE)
    in_openvino = OpenVINOInTreeFactory().try_out("onnx").devices
    gpus = [*XpuFactory()._gpus(torch), webgpu_gpu(monkeypatch), *in_openvino]
    assert count(*gpus) == 1


def test_two_gpus_under_wsl_are_two(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wsl(root, "cdd4:00:00.0", "e1a0:00:00.0")
    second = PhysicalDevice("CUDA", 1, "GPU-2", details={"pci_bus_id": "0000:02:00.0"})
    nvidia(monkeypatch, CUDA, second)
    assert _hardware.wsl_gpu() is None
    assert count(CUDA, second) == 2


def test_elsewhere_an_address_is_what_it_is(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    on_bus(root, "0000:03:00.0", MICROSOFT)
    nvidia(monkeypatch, CUDA)
    assert webgpu_gpu(monkeypatch, pci_bus_id="0000:03:00.0").physical_id == "0000:03:00.0"


def test_a_plugin_under_wsl_finds_its_gpu_by_the_order(root: Path) -> None:
    wsl(root, "cdd4:00:00.0")
    offered = _session_probe.with_session(
        PhysicalDevice("CUDA", 0, None, details={"pci_bus_id": "cdd4:00:00.0"}),
        SessionSpec("cuda_ep", {}, 0),
    )
    (gpu,) = _session_probe.on_gpus([CUDA], [offered])
    assert gpu.physical_id == UUID


# --- OpenVINO inside a build ----------------------------------------------------------------------


def tried(monkeypatch: pytest.MonkeyPatch, *live: str) -> list[tuple[str, str | None]]:
    """Return OpenVINO's name and the id of each device; those of *live* work."""

    def probe(spec: SessionSpec) -> Liveness:
        return LIVE if spec.options["device_type"] in live else Liveness("broken", reason="no")

    monkeypatch.setattr(openvino, "probe_provider", probe)
    devices = OpenVINOInTreeFactory().try_out("onnx").devices
    assert [gpu.index for gpu in devices] == list(range(len(devices)))
    return [
        (_session_probe.session_of(gpu).options["device_type"], gpu.physical_id) for gpu in devices
    ]


def test_each_gpu_on_the_bus_is_tried(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    on_bus(root, "0000:00:02.0", INTEL)
    on_bus(root, "0000:03:00.0", INTEL)
    assert tried(monkeypatch, "GPU.0", "GPU.1", "CPU") == [
        ("GPU.0", "0000:00:02.0"),
        ("GPU.1", "0000:03:00.0"),
        ("CPU", "cpu"),
    ]
    assert tried(monkeypatch, "GPU.1", "CPU") == [("GPU.1", None), ("CPU", "cpu")]


def test_the_only_gpu_has_no_number(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    on_bus(root, "0000:00:02.0", INTEL)
    assert tried(monkeypatch, "GPU", "NPU") == [("GPU", "0000:00:02.0"), ("NPU", None)]


@pytest.mark.parametrize(
    ("told", "names"),
    [(["CPU", "GPU.0", "GPU.1", "NPU"], ["GPU.0", "GPU.1"]), (["CPU", "GPU"], ["GPU"]), ([], [])],
)
def test_where_no_bus_is_shown_the_build_tells(
    root: Path, monkeypatch: pytest.MonkeyPatch, told: list[str], names: list[str]
) -> None:
    state = pytest.importorskip("onnxruntime").capi._pybind_state
    name = "get_available_openvino_device_ids"
    monkeypatch.setattr(state, name, lambda: told, raising=False)
    assert [found for found, _ in tried(monkeypatch, *names)] == names
    monkeypatch.setattr(state, name, lambda: 1 / 0, raising=False)
    assert tried(monkeypatch, "GPU") == [("GPU", None)]
