"""Hardware goes before packages: what is not here, or hidden, is all that is said.

The machines are made up of the files that such machines have.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from devicecore.liveness import hardware as _hardware
from devicecore_factories import _nvidia, _visibility
from devicecore_factories.cuda import CudaFactory
from devicecore_factories.openvino import OpenVINOInTreeFactory, OpenVINOPluginFactory
from devicecore_factories.rocm import RocmFactory
from devicecore_factories.tensorrt import TensorRTFactory
from devicecore_factories.webgpu import SoftwareWebGPUFactory, WebGPUFactory
from devicecore_factories.xpu import XpuFactory

if TYPE_CHECKING:
    from pathlib import Path

    from devicecore_factories._backend import BackendFactory

VARIABLES = (
    *("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES"),
    *("ONEAPI_DEVICE_SELECTOR", "ZE_AFFINITY_MASK", "ORT_WEBGPU_EP_ALLOW_SOFTWARE_ADAPTER"),
    *("RAY_JOB_ID", "RAY_RAYLET_PID", "SLURM_JOB_ID", "JPY_PARENT_PID"),
)
EVERY = (
    *(CudaFactory, TensorRTFactory, RocmFactory, XpuFactory),
    *(OpenVINOPluginFactory, WebGPUFactory),
)
FIRST, SECOND = "GPU-8f2e4a3c-1111", "GPU-a0000000-2222"


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the root of a machine with a processor of AMD and no GPUs."""
    monkeypatch.setattr(_hardware, "ROOT", tmp_path)
    monkeypatch.setattr(_hardware, "SYSTEM", "linux")
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc/cpuinfo").write_text("processor\t: 0\nvendor_id\t: AuthenticAMD\n")
    pci(tmp_path, "0000:00:00.0", 0x1022, 0x060000)
    pci(tmp_path, "0000:02:00.0", 0x1A03, 0x030000)  # a server's console
    return tmp_path


def pci(root: Path, address: str, vendor: int, kind: int) -> None:
    folder = root / "sys/bus/pci/devices" / address
    folder.mkdir(parents=True)
    for name, value in (("vendor", vendor), ("class", kind), ("device", 0x2331)):
        (folder / name).write_text(f"{value:#06x}\n")


def nvidia(root: Path) -> None:
    """Put two GPUs of NVIDIA in, with their driver."""
    (root / "dev").mkdir()
    for index, uuid in enumerate((FIRST, SECOND)):
        (root / f"dev/nvidia{index}").touch()
        folder = root / f"proc/driver/nvidia/gpus/0000:3{index}:00.0"
        folder.mkdir(parents=True)
        (folder / "information").write_text(f"GPU UUID: \t {uuid}\n")


def amd(root: Path) -> None:
    (root / "dev").mkdir()
    (root / "dev/kfd").touch()
    node = root / "sys/class/kfd/kfd/topology/nodes/1"
    node.mkdir(parents=True)
    (node / "properties").write_text("simd_count 1216\nlocation_id 9728\nunique_id 171\n")


def intel(root: Path) -> None:
    pci(root, "0000:03:00.0", _hardware.INTEL, 0x030000)


MACHINES = {CudaFactory: nvidia, TensorRTFactory: nvidia, RocmFactory: amd, XpuFactory: intel}


@pytest.mark.parametrize("factory", EVERY)
@pytest.mark.parametrize("deep", [False, True])
def test_without_the_hardware_no_package_is_looked_at(
    root: Path, monkeypatch: pytest.MonkeyPatch, factory: type[BackendFactory], deep: bool
) -> None:
    def read(*_: object) -> Any:
        pytest.fail("it looked further")

    monkeypatch.setattr(factory, "look", read)
    monkeypatch.setattr(factory, "try_out", read)
    for framework in (None, *factory.frameworks):
        answer = factory().probe(framework, deep=deep)
        assert (answer.state, answer.fix) == ("absent", "")
        assert answer.reason == f"there is no {factory.hardware} here"


@pytest.mark.parametrize(
    ("maker", "gpu", "here"),
    [
        ("AuthenticAMD", None, False),
        ("GenuineIntel", None, True),
        ("AuthenticAMD", 0x030000, True),
        ("AuthenticAMD", 0x120000, True),
        ("", None, None),
    ],
    ids=["AMD", "Intel", "AMD with a GPU of Intel", "AMD with an NPU of Intel", "unknown"],
)
def test_the_plug_in_of_openvino_is_for_hardware_of_intel(
    root: Path, maker: str, gpu: int | None, here: bool | None
) -> None:
    (root / "proc/cpuinfo").write_text(f"vendor_id\t: {maker}\n" if maker else "\n")
    if gpu:
        pci(root, "0000:03:00.0", _hardware.INTEL, gpu)
    assert OpenVINOPluginFactory().is_here() is here


def test_a_build_with_openvino_runs_on_every_processor(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    library = "devicecore_factories.openvino.provider_library"
    monkeypatch.setattr(library, lambda name: root)
    assert OpenVINOInTreeFactory().is_here() is None
    monkeypatch.setattr(library, lambda name: None)
    assert OpenVINOInTreeFactory().is_here() is False


def test_another_build_is_not_proposed_where_a_plug_in_would_do() -> None:
    answer = OpenVINOInTreeFactory().look("onnx")
    assert answer.state != "missing" or not answer.fix


def test_any_gpu_serves_webgpu(root: Path) -> None:
    assert _hardware.has_gpu() is False
    pci(root, "0000:03:00.0", _hardware.AMD, 0x038000)
    assert _hardware.has_gpu() is True


def test_an_adapter_in_software_is_no_advice(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    answer = SoftwareWebGPUFactory().probe()
    assert (answer.state, answer.fix) == ("absent", "")
    monkeypatch.setenv("ORT_WEBGPU_EP_ALLOW_SOFTWARE_ADAPTER", "1")
    assert SoftwareWebGPUFactory().hidden() is None


# --- variables ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("factory", "name", "value"),
    [
        *((CudaFactory, "CUDA_VISIBLE_DEVICES", value) for value in ("", "-1", "NoDevFiles", "2")),
        *((CudaFactory, "CUDA_VISIBLE_DEVICES", value) for value in ("0,0", "GPU-ffff", "-1,0")),
        (TensorRTFactory, "CUDA_VISIBLE_DEVICES", "none"),
        *((RocmFactory, "HIP_VISIBLE_DEVICES", value) for value in ("", "-1", "7", "GPU-ff")),
        (RocmFactory, "ROCR_VISIBLE_DEVICES", "GPU-0"),
        (RocmFactory, "CUDA_VISIBLE_DEVICES", ""),
        *((XpuFactory, "ZE_AFFINITY_MASK", value) for value in ("-1", "1", "4.0", "x")),
        *((XpuFactory, "ONEAPI_DEVICE_SELECTOR", value) for value in ("opencl:*", "*:cpu")),
        *((XpuFactory, "ONEAPI_DEVICE_SELECTOR", value) for value in ("level_zero:1", "!*:gpu")),
    ],
)
def test_the_variable_that_hides_all_gpus_is_named(
    root: Path,
    monkeypatch: pytest.MonkeyPatch,
    factory: type[BackendFactory],
    name: str,
    value: str,
) -> None:
    MACHINES[factory](root)
    assert factory().hidden() is None
    monkeypatch.setenv(name, value)
    for framework in (None, *factory.frameworks):
        answer = factory().probe(framework, deep=True)
        assert answer.state == "excluded"
        assert f"{name}={value!r}" in answer.reason
        assert answer.fix == f"unset {name} before the program starts"


@pytest.mark.parametrize(
    ("factory", "name", "value"),
    [
        *((CudaFactory, "CUDA_VISIBLE_DEVICES", value) for value in ("0", "1,0", " 1", "0,-1")),
        *((CudaFactory, "CUDA_VISIBLE_DEVICES", value) for value in ("gpu-A00", "MIG-1/2/3")),
        (RocmFactory, "HIP_VISIBLE_DEVICES", "0"),
        (RocmFactory, "ROCR_VISIBLE_DEVICES", "GPU-ab"),
        *((XpuFactory, "ZE_AFFINITY_MASK", value) for value in ("", "0", "0.1,3")),
        *((XpuFactory, "ONEAPI_DEVICE_SELECTOR", value) for value in ("level_zero:0", "!opencl:*")),
        *((XpuFactory, "ONEAPI_DEVICE_SELECTOR", value) for value in ("*:gpu", "opencl:*;*:0")),
    ],
)
def test_a_variable_that_shows_a_gpu_hides_none(
    root: Path,
    monkeypatch: pytest.MonkeyPatch,
    factory: type[BackendFactory],
    name: str,
    value: str,
) -> None:
    MACHINES[factory](root)
    monkeypatch.setenv(name, value)
    assert factory().hidden() is None


@pytest.mark.parametrize(
    ("variable", "fix"),
    [
        ("RAY_JOB_ID", "ask Ray for a GPU, as in @ray.remote(num_gpus=1)"),
        ("SLURM_JOB_ID", "ask SLURM for a GPU, as in --gpus=1"),
        ("JPY_PARENT_PID", "unset CUDA_VISIBLE_DEVICES and restart the kernel"),
    ],
)
def test_who_may_have_set_it(
    root: Path, monkeypatch: pytest.MonkeyPatch, variable: str, fix: str
) -> None:
    nvidia(root)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    monkeypatch.setenv(variable, "1")
    assert CudaFactory().probe("torch").fix == fix


def test_where_the_gpus_cannot_be_counted_the_drivers_words_name_the_variable(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "GPU-12345678")
    assert _nvidia.hidden() is None
    told = _visibility.because_of("no CUDA-capable device", "CUDA_VISIBLE_DEVICES")
    assert told == "no CUDA-capable device; CUDA_VISIBLE_DEVICES='GPU-12345678' may hide it"
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES")
    assert _visibility.because_of("why", "CUDA_VISIBLE_DEVICES") == "why"
