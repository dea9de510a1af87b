"""States that an installation has only once: environments made for them, and thrown away."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    Findings = Callable[..., list[dict[str, str]]]

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        sys.platform != "linux" or sys.version_info[:2] != (3, 11),
        reason="the pinned wheels are those of Linux and Python 3.11",
    ),
]
OPENVINO = "OpenVINOExecutionProvider"


def named(found: Sequence[dict[str, str]], name: str) -> list[dict[str, str]]:
    return [finding for finding in found if finding["name"] == name]


PROBED = """\
import json
from devicecore.ort import provider_metadata
names = ("CPUExecutionProvider", "OpenVINOExecutionProvider")
found = [provider_metadata(name, plugin=False) for name in names]
print(json.dumps([[each.state, each.fix] for each in found]))
"""


def test_two_builds_and_an_emptied_one(
    findings: Findings, told: Callable[..., Any], environment: Any
) -> None:
    environment.pip("install", "onnxruntime==1.32.0")
    assert findings(python=environment.python) == []
    environment.pip("install", "onnxruntime-openvino==1.24.1")
    (both,) = named(findings(python=environment.python), "two-onnxruntime-packages")
    listed = "onnxruntime 1.32.0, onnxruntime-openvino 1.24.1"
    assert both["evidence"].startswith(f"pip lists {listed}; an import gets onnxruntime-openvino")
    assert both["fix"].endswith("pip install onnxruntime-openvino")
    environment.pip("uninstall", "--yes", "onnxruntime-openvino")
    (emptied,) = named(findings(python=environment.python), "two-onnxruntime-packages")
    assert "empty package" in emptied["problem"]
    assert emptied["fix"] == "pip install --force-reinstall --no-deps onnxruntime"
    assert told(PROBED, python=environment.python) == [["broken", emptied["fix"]]] * 2
    environment.pip(*emptied["fix"].split()[1:])
    assert findings(python=environment.python) == []


def test_openvino_inside_the_build(findings: Findings, environment: Any) -> None:
    environment.pip("install", "onnxruntime-openvino==1.24.1")

    def about(options: dict[str, str]) -> dict[str, dict[str, str]]:
        found = findings(python=environment.python, sessions=[(OPENVINO, options)])
        return {finding["name"]: finding for finding in found}

    assert about({"device_type": "CPU"}) == {}
    bogus = about({"device_type": "BANANA"})
    assert "although session.get_providers() lists it" in bogus["silent-cpu-fallback"]["evidence"]
    assert "'BANANA'" in bogus["wrong-ep-device-or-option-dialect"]["problem"]
    unknown = about({"bogus": "1"})["wrong-ep-device-or-option-dialect"]
    assert "Invalid OpenVINO EP option: bogus" in unknown["evidence"]
    reduced = about({"device_type": "CPU", "precision": "ACCURACY"})
    assert reduced["reduced-precision"]["evidence"] == "precision is ACCURACY"


def test_a_build_for_cuda_without_cuda(findings: Findings, environment: Any) -> None:
    environment.pip("install", "onnxruntime-gpu==1.31.1")
    before = findings(python=environment.python)
    if not named(before, "missing-or-wrong-major-library"):
        pytest.skip("CUDA 13 is installed on this machine")
    cuda, tensorrt = named(before, "missing-or-wrong-major-library")
    for name in ("libcublasLt.so.13", "libcublas.so.13", "libcurand.so.10"):
        assert name in cuda["evidence"]
    assert "libcudnn.so.9" in tensorrt["evidence"]
    assert named(before, "tensorrt-version-or-path")
    assert len(named(before, "silent-cpu-fallback")) == 2
    environment.pip("install", "nvidia-curand")
    after = findings(python=environment.python)
    (apart,) = named(after, "libraries-present-but-not-loaded")
    assert "libcurand.so.10" in apart["evidence"]
    folder = Path(apart["fix"].partition('"')[2].partition(":")[0])
    assert (folder / "libcurand.so.10").is_file()
    asked = findings(python=environment.python, sessions=[("CUDAExecutionProvider", {})])
    problems = [each["problem"] for each in named(asked, "silent-cpu-fallback")]
    assert any("a session of a model of two nodes" in problem for problem in problems)


@pytest.mark.parametrize("wheel", ["opencv-python-headless==4.11.0.86", "opencv-python==4.6.0.66"])
def test_wheels_of_opencv_bring_their_libraries(
    findings: Findings, environment: Any, tmp_path: Path, wheel: str
) -> None:
    """Each carries its libraries beside it; one without the desktop also works without it."""
    folder = tmp_path / "target"
    environment.pip("install", "--no-deps", "--target", str(folder), wheel)
    missing = named(findings(folder, python=environment.python), "opencv-system-libraries")
    assert not any(library in str(missing) for library in ("libav", "libssl", "libQt", "libgfor"))
    if "headless" in wheel:
        assert missing == []
