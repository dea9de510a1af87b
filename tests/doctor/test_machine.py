"""What is wrong with a machine: the builds are fakes of real libraries, the loader is real."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from devicecore.config import effective_cpu_count
from devicecore.device_factory import Candidate, Registration
from devicecore.doctor import (
    Case,
    diagnose,
    engine_cache,
    gpu_kernels,
    option_dialect,
    reduced_precision,
    thread_limits,
)
from devicecore.liveness import Liveness, PhysicalDevice
from devicecore.ort import OrtPackage
from tests.doctor.conftest import record

if TYPE_CHECKING:
    from collections.abc import Callable

    Findings = Callable[..., list[dict[str, str]]]
    Build = Callable[..., Path]

pytest.importorskip("onnxruntime")
needs_linux = pytest.mark.skipif(sys.platform != "linux", reason="ELF files are Linux's")


def named(found: list[dict[str, str]], name: str) -> dict[str, str]:
    matching = [finding for finding in found if finding["name"] == name]
    assert len(matching) == 1, found
    return matching[0]


def candidate(device_type: str, liveness: Liveness, *, chosen: bool = False) -> Candidate:
    """Return the standing of a GPU that this machine has not."""
    registration = Registration(device_type, "nowhere:Fake", 0)
    return Candidate(registration, 0, liveness, chosen)


@needs_linux
def test_missing_libraries_are_named_all_at_once(findings: Findings, gpu_build: Build) -> None:
    build = gpu_build(cuda=["libcublasLt.so.13", "libcurand.so.10", "libcuda.so.1"])
    found = findings(build)
    missing = named(found, "missing-or-wrong-major-library")
    for name in ("libcublasLt.so.13", "libcurand.so.10", "libcuda.so.1"):
        assert name in missing["evidence"]
    assert "built for CUDA 13.0" in missing["evidence"]
    assert missing["fix"].startswith("pip install nvidia-cublas nvidia-curand; install the NVIDIA")
    silent = named(found, "silent-cpu-fallback")
    assert "CUDAExecutionProvider runs on the CPU" in silent["problem"]
    assert "disable_cpu_ep_fallback" in silent["fix"]


@needs_linux
def test_cudnn_which_only_a_run_would_miss(
    findings: Findings, gpu_build: Build, tmp_path: Path
) -> None:
    build = gpu_build(cuda=[], tensorrt=["libcudnn.so.9"])
    missing = [each for each in findings(build) if each["name"] == "missing-or-wrong-major-library"]
    assert any("CUDA" in each["problem"] and "cudnn" in each["evidence"] for each in missing)
    assert all(each["fix"].startswith("pip install nvidia-cudnn-cu13") for each in missing)
    lib = build / "nvidia" / "cudnn" / "lib"
    lib.mkdir(parents=True)
    (lib / "libcudnn.so.9").write_bytes(Path(str(_numpy_library())).read_bytes())
    apart = [each for each in findings(build) if each["name"] == "libraries-present-but-not-loaded"]
    assert any("CUDA" in each["problem"] and str(lib) in each["fix"] for each in apart)


@needs_linux
def test_another_major_version_is_shown(
    findings: Findings, gpu_build: Build, tmp_path: Path
) -> None:
    other = tmp_path / "cuda12"
    other.mkdir()
    (other / "libcublasLt.so.12").touch()
    build = gpu_build(cuda=["libcublasLt.so.13"])
    found = findings(build, environment={"LD_LIBRARY_PATH": str(other)})
    evidence = named(found, "missing-or-wrong-major-library")["evidence"]
    assert f"here are {other / 'libcublasLt.so.12'}" in evidence


@needs_linux
def test_libraries_in_wheels_are_not_missing_but_not_loaded(
    findings: Findings, gpu_build: Build, tmp_path: Path
) -> None:
    build = gpu_build(cuda=["libcublasLt.so.13"])
    lib = build / "nvidia" / "cu13" / "lib"
    lib.mkdir(parents=True)
    (lib / "libcublasLt.so.13").write_bytes(Path(str(_numpy_library())).read_bytes())
    found = findings(build)
    apart = named(found, "libraries-present-but-not-loaded")
    assert "libcublasLt.so.13" in apart["evidence"]
    assert apart["fix"] == f'export LD_LIBRARY_PATH="{lib}:$LD_LIBRARY_PATH"'
    missing = [each for each in found if each["name"] == "missing-or-wrong-major-library"]
    assert all("libcublasLt" not in each["evidence"] for each in missing)


def _numpy_library() -> str | None:
    spec = find_spec("numpy._core._multiarray_umath")
    return spec.origin if spec else None


@needs_linux
@pytest.mark.parametrize(
    ("file", "problem", "fix"),
    [
        ("", "TensorRT 10 is not installed", "pip install 'tensorrt-cu13==10.*'"),
        (
            "libnvinfer.so.11",
            "TensorRT is installed in another version than 10",
            "pip install 'tensorrt-cu13==10.*'",
        ),
        (
            "libnvinfer.so.10",
            "TensorRT is installed where the loader does not look",
            'export LD_LIBRARY_PATH="{folder}:$LD_LIBRARY_PATH"',
        ),
    ],
    ids=["none", "other major", "off the path"],
)
def test_tensorrt(findings: Findings, gpu_build: Build, file: str, problem: str, fix: str) -> None:
    build = gpu_build(tensorrt=["libnvinfer.so.10"])
    folder = build / "tensorrt_libs"
    if file:  # as NVIDIA's wheel has it
        folder.mkdir()
        (folder / "__init__.py").touch()
        (folder / file).touch()
    found = named(findings(build), "tensorrt-version-or-path")
    assert found["problem"] == problem
    assert found["fix"] == fix.format(folder=folder)
    if file:
        assert file in found["evidence"]


def test_a_removed_provider_inside_the_build(findings: Findings, gpu_build: Build) -> None:
    build = gpu_build()
    info = build / "onnxruntime" / "capi" / "build_and_package_info.py"
    info.write_text("package_name = 'onnxruntime-rocm'\n__version__ = '1.22.2'\n")
    found = named(findings(build), "renamed-or-removed-provider")
    assert "ROCMExecutionProvider was removed" in found["problem"]
    assert found["fix"].endswith("pip install onnxruntime-migraphx")


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="affinity is Linux's")
def test_fewer_cpus_than_the_machine_has() -> None:
    if (os.cpu_count() or 1) < 2:
        pytest.skip("this machine has one CPU")
    code = (
        "import os; os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})\n"
        "from devicecore.doctor import Case, thread_limits\n"
        "print(*thread_limits.find(Case()))"
    )
    told = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout
    assert "threads-vs-limits" in told
    assert "intra_op_num_threads = 1" in told


def test_all_the_cpus_of_the_machine_are_no_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "cpu_count", effective_cpu_count)
    assert list(thread_limits.find(Case())) == []


@pytest.mark.parametrize(
    ("place", "said"),
    [("file", "lies below"), ("file/below", "a file"), ("open", "by others"), ("new", "")],
)
def test_the_cache_folder(
    place: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(0o777)
    (tmp_path / "open" / "engines").mkdir()
    (tmp_path / "open" / "engines").chmod(0o777)
    monkeypatch.setenv("DEVICECORE_CACHE_DIR", str(tmp_path / place))
    found = list(engine_cache.find(Case()))
    assert [said in finding.evidence for finding in found] == [True] * bool(said)
    assert all(finding.fix.startswith("export DEVICECORE_CACHE_DIR") for finding in found)
    assert not (tmp_path / "new").exists()


def test_a_gpu_without_kernels() -> None:
    """The GPU is a fake: only a new one shows this."""
    error = "CUDA error: no kernel image is available for execution on the device"
    gpu = PhysicalDevice("CUDA", 0, description="a GPU", details={"compute_capability": "12.0"})
    answer = Liveness("broken", "opened", reason=error, devices=(gpu,))
    case = Case(
        (candidate("CUDA", Liveness("broken", frameworks={"torch": answer}, devices=(gpu,))),)
    )
    (found,) = gpu_kernels.find(case)
    assert found.name == "no-kernel-for-this-gpu"
    assert "no kernel image" in found.evidence
    assert "compute capability 12.0" in found.evidence
    assert "torch" in found.fix


def test_the_architectures_of_a_library(tmp_path: Path) -> None:
    """The notes are those of the compiler in a real build; the other mention is a kernel's name."""
    library = tmp_path / "liba.so"
    library.write_bytes(
        b"x\0-arch sm_90a -m 64\0-arch sm_75 -m 64 \0.target sm_70\0-arch sm_120a -m "
    )
    assert gpu_kernels.architectures(library) == ("7.5", "9.0", "12.0")


def test_openvino_on_the_cpu_beside_a_gpu_of_intel() -> None:
    """Both are fakes: the machine has no GPU of Intel."""
    cpu = PhysicalDevice("OPENVINO", 0, "cpu", "the CPU", "CPU")
    openvino = candidate("OPENVINO", Liveness("live", "ran", devices=(cpu,)), chosen=True)
    xpu = candidate("XPU", Liveness("missing", reason="torch was built without XPU"))
    (found,) = option_dialect.find(Case((openvino, xpu)))
    assert found.name == "wrong-ep-device-or-option-dialect"
    assert "has a GPU of Intel" in found.problem
    absent = candidate("XPU", Liveness("absent"))
    assert list(option_dialect.find(Case((openvino, absent)))) == []


def test_a_cpu_with_bf16(monkeypatch: pytest.MonkeyPatch) -> None:
    """The plug-in is the installed one; the CPU's flags are fakes, so that every CPU tests it."""
    pytest.importorskip("onnxruntime_ep_openvino", reason="OpenVINO's plug-in is not installed")
    untried = Case((candidate("OPENVINO", Liveness("untried")),))
    monkeypatch.setattr(reduced_precision, "cpu_flags", lambda: {"avx2", "amx_bf16"})
    (found,) = reduced_precision.find(untried)
    assert found.is_advice
    assert "bf16" in found.problem
    assert "amx_bf16" in found.evidence
    monkeypatch.setattr(reduced_precision, "cpu_flags", lambda: {"avx2"})
    assert list(reduced_precision.find(untried)) == []


@pytest.mark.skipif(not Path("/proc/cpuinfo").exists(), reason="Linux tells the flags there")
def test_the_flags_of_this_cpu() -> None:
    text = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    flags = reduced_precision.cpu_flags()
    assert all(f" {flag}" in text for flag in flags)


def test_this_machine_is_diagnosed_without_importing_a_framework(findings: Findings) -> None:
    found = findings()  # the fixture looks at what was imported
    assert {finding["name"] for finding in found} <= NAMES
    assert all(finding[key] for finding in found for key in ("problem", "evidence", "fix"))


def test_no_finding_where_nothing_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("onnxruntime", "cv2", "nvidia", "tensorrt_libs"):
        monkeypatch.setitem(sys.modules, module, None)
    allowed = {"threads-vs-limits", "two-onnxruntime-packages"}
    assert {finding.name for finding in diagnose(Case())} <= allowed


NAMES = {
    "silent-cpu-fallback",
    "two-onnxruntime-packages",
    "missing-or-wrong-major-library",
    "libraries-present-but-not-loaded",
    "conv-search-on-dynamic-shapes",
    "tensorrt-version-or-path",
    "engine-build-or-cache",
    "renamed-or-removed-provider",
    "wrong-ep-device-or-option-dialect",
    "reduced-precision",
    "threads-vs-limits",
    "no-kernel-for-this-gpu",
    "opencv-system-libraries",
    "two-opencv-packages",
    "shadowed-package",
    "emptied-package",
    "numpy-1-binaries",
    "torchvision-for-another-torch",
}


def test_two_builds_of_onnxruntime(findings: Findings, gpu_build: Build) -> None:
    """What pip wrote is a fake; a slow test has two real builds."""
    build = gpu_build()
    record(build, "onnxruntime-gpu", "1.31.1", "onnxruntime")
    found = named(findings(build), "two-onnxruntime-packages")
    assert "onnxruntime-gpu 1.31.1; an import gets onnxruntime-gpu 1.31.1" in found["evidence"]
    assert found["fix"] == (
        "pip uninstall -y onnxruntime onnxruntime-gpu && pip install onnxruntime-gpu"
    )


def test_the_files_of_another_build_than_pip_lists(findings: Findings, gpu_build: Build) -> None:
    found = named(findings(gpu_build()), "two-onnxruntime-packages")
    assert "an import gets onnxruntime-gpu 1.31.1, built for CUDA 13.0" in found["evidence"]
    assert found["fix"] == "pip install --force-reinstall --no-deps onnxruntime"


@needs_linux
def test_opencv(findings: Findings, gpu_build: Build) -> None:
    pytest.importorskip("cv2")
    folder = gpu_build(cuda=["libGL.so.99"])
    library = folder / "onnxruntime" / "capi" / "libonnxruntime_providers_cuda.so"
    (folder / "cv2").mkdir()
    (folder / "cv2" / "__init__.py").touch()
    library.rename(folder / "cv2" / "cv2.abi3.so")
    missing = named(findings(folder), "opencv-system-libraries")
    assert "libGL.so.99" in missing["evidence"]
    record(folder, "opencv-contrib-python", "4.8.0", "cv2")
    two = named(findings(folder), "two-opencv-packages")
    assert "opencv-contrib-python" in two["evidence"]


@pytest.mark.parametrize(("capability", "count"), [("9.0", 1), ("8.0", 1), ("7.5", 0)])
def test_gpus_with_tf32(capability: str, count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The GPU is a fake, and so is the build for it."""
    build = OrtPackage(Path(), "onnxruntime-gpu", "1.31.1", "13.0")
    monkeypatch.setattr(reduced_precision, "ort_package", lambda: build)
    gpu = PhysicalDevice("CUDA", 0, description="a GPU", details={"compute_capability": capability})
    live = Liveness("live", "ran", devices=(gpu,))
    found = list(reduced_precision.find(Case((candidate("CUDA", live, chosen=True),))))
    assert len(found) == count
    assert all(f"compute capability {capability}" in each.evidence for each in found)
