"""Probes, errors and the doctor say the same of one fault. What pip wrote is a fake."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.doctor.conftest import needing, record

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytest.importorskip("onnxruntime")

EVERYBODY = """\
import json
from devicecore.device_factory import Candidate, Registration
from devicecore.doctor import Case, diagnose
from devicecore.errors import NotLiveError
from devicecore.liveness import Liveness
from devicecore.ort import creation, package, provider_metadata
from devicecore.ort.builds import lack_of
from devicecore.ort.providers import provider_named
answer = provider_metadata("{provider}")
lack = lack_of(provider_named("{provider}"), package.ort_package())
absent = Liveness("absent")
case = Case(tuple(Candidate(Registration(t, "a:B", 0), 0, absent) for t in {absent}))
found = [each for each in diagnose(case) if each.name == "two-onnxruntime-packages"]
print(json.dumps({{
    "probe": [answer.state, answer.reason, answer.fix],
    "error": lack,
    "doctor": [(each.problem, each.fix) for each in found],
    "all": [each.name for each in diagnose(case)],
}}))
"""
CUDA = "CUDAExecutionProvider"


def asked(told: Callable[..., Any], folder: Path, provider: str = CUDA, absent: str = "()") -> Any:
    return told(EVERYBODY.format(provider=provider, absent=absent), folder)


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


def test_without_the_hardware_its_build_is_not_kept(
    told: Callable[..., Any], tmp_path: Path
) -> None:
    build_of(tmp_path, "onnxruntime")
    record(tmp_path, "onnxruntime-gpu", "1.31.1", "onnxruntime")
    record(tmp_path, "onnxruntime", "1.32.0", "onnxruntime")
    said = asked(told, tmp_path, absent="('CUDA', 'TENSORRT')")
    ((_, fix),) = said["doctor"]
    assert fix == "pip uninstall -y onnxruntime onnxruntime-gpu && pip install onnxruntime"


@pytest.mark.parametrize("distribution", ["onnxruntime", "onnxruntime-openvino"])
def test_a_library_that_was_left_behind_for_good(
    told: Callable[..., Any], tmp_path: Path, distribution: str
) -> None:
    """pip lists one build only: the other one's library is not judged."""
    build_of(tmp_path, distribution)
    record(tmp_path, distribution, "1.32.0", "onnxruntime")
    code = "import sys; sys.path[:] = [p for p in sys.path if 'site-packages' not in p]\n"
    site = "import attr, attrs, numpy, packaging\n"
    said = told(site + code + EVERYBODY.format(provider=CUDA, absent="()"), tmp_path)
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
