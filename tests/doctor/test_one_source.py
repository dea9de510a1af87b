"""Probes, errors and the doctor say the same of one fault. What pip wrote is a fake."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest

from tests.doctor.conftest import SAYS_NOTHING, needing, record

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

pytest.importorskip("onnxruntime")

EVERYBODY = """\
import json
from pathlib import Path
from devicecore.doctor import Case, Session, Trial, diagnose
from devicecore.liveness import hardware
hardware.ROOT = Path("{system}")
from devicecore.ort import package, provider_metadata
from devicecore.ort import session_creation
from devicecore.ort.builds import lack_of
from devicecore.ort.providers import provider_named
answer = provider_metadata("{provider}")
lack = lack_of(provider_named("{provider}"), package.ort_package())
opened = Trial({{"CPUExecutionProvider": 2}})
case = Case(sessions=tuple(Session(name, trial=opened) for name in {sessions}))
found = [each for each in diagnose(case) if each.name == "two-onnxruntime-packages"]
print(json.dumps({{
    "probe": [answer.state, answer.reason, answer.fix],
    "error": lack,
    "doctor": [(each.problem, each.fix) for each in found],
    "all": [each.name for each in diagnose(case)],
    "fixes": [each.fix for each in diagnose(case)],
}}))
"""
CUDA = "CUDAExecutionProvider"


def program(provider: str = CUDA, system: Path = SAYS_NOTHING, sessions: Sequence[str] = ()) -> str:
    return EVERYBODY.format(provider=provider, system=system, sessions=tuple(sessions))


def asked(told: Callable[..., Any], folder: Path, *args: Any) -> Any:
    return told(program(*args), folder)


def build_of(folder: Path, distribution: str) -> Path:
    """Make a build of ONNX Runtime in which another one has left its library for CUDA."""
    capi = folder / "onnxruntime" / "capi"
    capi.mkdir(parents=True)
    (folder / "onnxruntime" / "__init__.py").touch()
    facts = f"package_name = '{distribution}'\n__version__ = '1.32.0'\n"
    (capi / "build_and_package_info.py").write_text(facts)
    (capi / "libonnxruntime_providers_cuda.so").write_bytes(needing(["libcublasLt.so.13"]))
    return folder


def test_the_library_of_a_build_below_another(told: Callable[..., Any], tmp_path: Path) -> None:
    build_of(tmp_path, "onnxruntime")
    record(tmp_path, "onnxruntime-gpu", "1.31.1", "onnxruntime")
    record(tmp_path, "onnxruntime", "1.32.0", "onnxruntime")
    said = asked(told, tmp_path)
    fix = "pip uninstall -y onnxruntime onnxruntime-gpu && pip install onnxruntime-gpu"
    assert said["doctor"] == [[said["doctor"][0][0], fix]]
    state, reason, advice = said["probe"]
    assert (state, advice) == ("broken", fix)
    assert said["doctor"][0][0] in reason
    assert said["error"] == said["probe"]
    assert "cublas" not in str(said)
    assert "missing-or-wrong-major-library" not in said["all"]


# Of each kind of provider: those of a build, of a plug-in, of both, and one that was removed.
OTHERS = [
    "TensorrtExecutionProvider",
    "NvTensorRTRTXExecutionProvider",
    "cuda_ep",
    "MIGraphXExecutionProvider",
    "ROCMExecutionProvider",
    "OpenVINOExecutionProvider",
    "WebGpuExecutionProvider",
]
# What is for hardware, whatever it is called: a package, or a driver.
FOR_HARDWARE = re.compile(
    r"\binstall.*(-gpu|-rocm|-migraphx|-webgpu|-openvino|nvidia|tensorrt|cuda|driver)",
    re.IGNORECASE,
)


def test_without_the_hardware_its_build_is_not_kept(
    told: Callable[..., Any], tmp_path: Path, without_a_gpu: Path
) -> None:
    build_of(tmp_path, "onnxruntime")
    record(tmp_path, "onnxruntime-gpu", "1.31.1", "onnxruntime")
    record(tmp_path, "onnxruntime", "1.32.0", "onnxruntime")
    said = asked(told, tmp_path, CUDA, without_a_gpu, [CUDA])
    fix = "pip uninstall -y onnxruntime onnxruntime-gpu && pip install onnxruntime"
    assert [fix for _, fix in said["doctor"]] == [fix]
    assert said["probe"][2] == said["error"][2] == fix
    assert not any(map(FOR_HARDWARE.search, said["fixes"]))
    assert "silent-cpu-fallback" in said["all"]


@pytest.mark.parametrize("with_files", [True, False])
def test_without_the_hardware_the_only_build_for_it_is_not_put_back(
    told: Callable[..., Any], tmp_path: Path, without_a_gpu: Path, with_files: bool
) -> None:
    """pip lists one build, whose files another one took along, or left its own in their place."""
    if with_files:
        build_of(tmp_path, "onnxruntime")
    record(tmp_path, "onnxruntime-gpu", "1.31.1", "onnxruntime")
    alone = "import sys, attrs; sys.path[:] = [p for p in sys.path if 'site-packages' not in p]\n"
    for system, fix in (
        (without_a_gpu, "pip uninstall -y onnxruntime-gpu && pip install onnxruntime"),
        (SAYS_NOTHING, "pip install --force-reinstall --no-deps onnxruntime-gpu"),
    ):
        said = told(f"import numpy, packaging.version\n{alone}{program(CUDA, system)}", tmp_path)
        assert [fix for _, fix in said["doctor"]] == [fix]
        assert said["probe"][2] == said["error"][2] == fix


@pytest.mark.parametrize("provider", [CUDA, *OTHERS])
@pytest.mark.parametrize("distribution", ["onnxruntime", "onnxruntime-gpu", "onnxruntime-rocm"])
def test_without_the_hardware_nothing_is_proposed_for_it(
    told: Callable[..., Any],
    tmp_path: Path,
    without_a_gpu: Path,
    provider: str,
    distribution: str,
) -> None:
    """The libraries need what is not there: of CUDA, cuDNN, TensorRT and ROCm."""
    capi = build_of(tmp_path, distribution) / "onnxruntime" / "capi"
    for name, needs in (
        ("cuda", ["libcublasLt.so.13", "libcurand.so.10", "libcuda.so.1"]),
        ("tensorrt", ["libnvinfer.so.10", "libcudnn.so.9"]),
        ("rocm", ["libamdhip64.so.6"]),
    ):
        file = capi / f"libonnxruntime_providers_{name}.so"
        file.write_bytes(needing(needs))
    alone = "import sys, attrs; sys.path[:] = [p for p in sys.path if 'site-packages' not in p]\n"
    code = f"import numpy, packaging.version\n{alone}{program(provider, without_a_gpu, [provider])}"
    said = told(code, tmp_path)
    assert said["probe"][0] == said["error"][0] == "absent"
    for reason in (said["probe"][1], said["error"][1]):
        assert reason.startswith("there is no ")
    assert said["probe"][2] == said["error"][2] == ""
    assert not any(map(FOR_HARDWARE.search, said["fixes"])), said["fixes"]
    of_libraries = {"missing-or-wrong-major-library", "tensorrt-version-or-path"}
    assert of_libraries.isdisjoint(said["all"])
    assert said["all"].count("silent-cpu-fallback") == 1
    if distribution == "onnxruntime-gpu" and provider == CUDA:  # else this test could not fail
        unknown = told(code.replace(str(without_a_gpu), str(SAYS_NOTHING)), tmp_path)
        assert of_libraries <= {*unknown["all"]}


@pytest.mark.parametrize("distribution", ["onnxruntime", "onnxruntime-openvino"])
def test_a_library_that_was_left_behind_for_good(
    told: Callable[..., Any], tmp_path: Path, distribution: str
) -> None:
    """pip lists one build only: the other one's library is not judged."""
    build_of(tmp_path, distribution)
    record(tmp_path, distribution, "1.32.0", "onnxruntime")
    code = "import sys; sys.path[:] = [p for p in sys.path if 'site-packages' not in p]\n"
    site = "import attr, attrs, numpy, packaging\n"
    said = told(site + code + program(), tmp_path)
    state, reason, fix = said["probe"]
    assert (state, said["doctor"]) == ("missing", [])
    assert reason == f"{distribution} 1.32.0 was built without {CUDA}"
    assert fix == f"pip uninstall -y {distribution} && pip install onnxruntime-gpu"


def test_another_build_is_put_in_the_place_of_all_that_are_there(
    told: Callable[..., Any], tmp_path: Path
) -> None:
    build_of(tmp_path, "onnxruntime-openvino")
    record(tmp_path, "onnxruntime-openvino", "1.32.0", "onnxruntime")
    _, _, fix = asked(told, tmp_path)["error"]
    assert fix == (
        "pip uninstall -y onnxruntime onnxruntime-openvino && pip install onnxruntime-gpu"
    )


def test_a_plug_in_and_its_kin_are_no_builds(told: Callable[..., Any], tmp_path: Path) -> None:
    record(tmp_path, "onnxruntime-ep-openvino", "1.8.1", "onnxruntime_ep_openvino")
    record(tmp_path, "onnxruntime-extensions", "0.14.0", "onnxruntime_extensions")
    code = "import json; from devicecore.ort.builds import recorded_builds as r"
    assert list(told(f"{code}; print(json.dumps(r()))", tmp_path)) == ["onnxruntime"]


def test_what_is_wrong_with_onnxruntime_goes_before_a_plug_in(
    told: Callable[..., Any], tmp_path: Path
) -> None:
    build_of(tmp_path, "onnxruntime")
    record(tmp_path, "onnxruntime-gpu", "1.31.1", "onnxruntime")
    record(tmp_path, "onnxruntime", "1.32.0", "onnxruntime")
    code = (
        "import json, sys\nfrom pathlib import Path\n"
        "from devicecore.liveness import hardware\n"
        f"hardware.ROOT = Path({str(SAYS_NOTHING)!r})\n"
        "sys.modules['onnxruntime_ep_openvino'] = None\n"
        "from devicecore.ort import provider_metadata\n"
        "found = provider_metadata('OpenVINOExecutionProvider', plugin=True)\n"
        "print(json.dumps([found.state, found.reason, found.fix]))"
    )
    state, reason, fix = told(code, tmp_path)
    assert state == "broken"
    assert "several builds of ONNX Runtime share one folder" in reason
    assert "ep-openvino" not in fix
