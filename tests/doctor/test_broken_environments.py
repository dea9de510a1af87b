"""Environments that are broken as people break them: what the command says, and that it is mended.

Each is a real environment with real wheels, broken by pip itself or by a file of a program, and
mended by the fix that is proposed.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        sys.platform != "linux" or sys.version_info[:2] != (3, 11),
        reason="the pinned wheels are those of Linux and Python 3.11",
    ),
]
RESIZE = """\
import numpy
from devicecore import cv
from devicecore.errors import DeviceCoreError
try:
    print(cv.resize(numpy.zeros((4, 4), "uint8"), (2, 2)).shape)
except DeviceCoreError as error:
    print(error)
"""
RUN = """\
from devicecore.errors import DeviceCoreError
import devicecore
try:
    print(devicecore.resolve("cpu", framework="onnx").device.device_type)
except DeviceCoreError as error:
    print(error)
"""


class Doctor:
    """Runs the command, and programs, in an environment."""

    def __init__(self, environment: Any, packages: Path, cache: Path) -> None:
        self._environment = environment
        self._variables = {
            **os.environ,
            "PYTHONPATH": str(packages),
            "DEVICECORE_CACHE_DIR": str(cache),
        }

    def pip(self, *words: str) -> None:
        self._environment.pip(*words)

    def python(self, *words: str, cwd: Path, **variables: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [self._environment.python, *words],
            cwd=cwd,
            env=self._variables | variables,
            capture_output=True,
            text=True,
            check=False,
        )

    def findings(self, cwd: Path, **variables: str) -> list[dict[str, str]]:
        done = self.python("-m", "devicecore", "doctor", "--json", cwd=cwd, **variables)
        assert "Traceback" not in done.stderr
        found: list[dict[str, str]] = json.loads(done.stdout)["findings"]
        assert done.returncode == any(not each["is_advice"] for each in found)
        # What this machine is like is not what is looked at here.
        return [
            each for each in found if each["name"] not in {"threads-vs-limits", "reduced-precision"}
        ]

    def said(self, code: str, cwd: Path) -> str:
        done = self.python("-c", code, cwd=cwd)
        assert done.returncode == 0, done.stderr
        return done.stdout


@pytest.fixture
def doctor(environment: Any, our_packages: Path, tmp_path: Path) -> Doctor:
    return Doctor(environment, our_packages, tmp_path / "cache")


def test_two_wheels_of_opencv_of_which_one_is_uninstalled(doctor: Doctor, tmp_path: Path) -> None:
    headless, contrib = "opencv-python-headless", "opencv-contrib-python-headless"
    doctor.pip("install", "numpy", f"{headless}==4.11.0.86", f"{contrib}==4.11.0.86")
    (both,) = doctor.findings(tmp_path)
    assert both["name"] == "two-opencv-packages"
    assert headless in both["evidence"]
    assert contrib in both["evidence"]
    doctor.pip("uninstall", "--yes", contrib)
    (emptied,) = doctor.findings(tmp_path)
    assert emptied["name"] == "emptied-package"
    assert emptied["fix"] == f"pip install --force-reinstall --no-deps {headless}"
    assert emptied["fix"] in doctor.said(RESIZE, tmp_path)
    doctor.pip(*emptied["fix"].split()[1:])
    assert doctor.findings(tmp_path) == []
    assert doctor.said(RESIZE, tmp_path) == "(2, 2)\n"


def test_a_build_of_onnxruntime_that_is_uninstalled_over_another(
    doctor: Doctor, tmp_path: Path
) -> None:
    doctor.pip("install", "onnxruntime==1.24.1", "onnxruntime-openvino==1.24.1")
    assert [each["name"] for each in doctor.findings(tmp_path)] == ["two-onnxruntime-packages"]
    doctor.pip("uninstall", "--yes", "onnxruntime")
    (emptied,) = doctor.findings(tmp_path)
    assert emptied["name"] == "two-onnxruntime-packages"
    assert emptied["fix"] == "pip install --force-reinstall --no-deps onnxruntime-openvino"
    assert emptied["fix"] in doctor.said(RUN, tmp_path)
    doctor.pip(*emptied["fix"].split()[1:])
    assert doctor.findings(tmp_path) == []
    assert doctor.said(RUN, tmp_path) == "CPU\n"


def test_binaries_for_numpy_1_beside_numpy_2(doctor: Doctor, tmp_path: Path) -> None:
    wheels = ("onnxruntime==1.18.1", "opencv-python-headless==4.9.0.80")
    doctor.pip("install", "--no-deps", "numpy==2.2.6", *wheels)
    found = {each["problem"].split()[0]: each for each in doctor.findings(tmp_path)}
    assert {each["name"] for each in found.values()} == {"numpy-1-binaries"}
    assert set(found) == {"onnxruntime", "cv2"}
    assert "was built for NumPy 1" in doctor.said(RESIZE, tmp_path)
    fix = "pip install 'numpy<2'"
    assert all(each["fix"].endswith(fix) for each in found.values())
    doctor.pip("install", "numpy<2")
    assert doctor.findings(tmp_path) == []
    assert doctor.said(RESIZE, tmp_path) == "(2, 2)\n"


@pytest.fixture(scope="module")
def whole(
    environment_with: Callable[..., Any],
    our_packages: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> Doctor:
    """Return the doctor of an environment in which nothing is broken."""
    environment = environment_with("numpy", "onnxruntime", "opencv-python-headless")
    return Doctor(environment, our_packages, tmp_path_factory.mktemp("cache"))


@pytest.mark.parametrize("module", ["onnxruntime", "cv2", "numpy"])
def test_a_file_of_the_program_hides_a_package(whole: Doctor, module: str, tmp_path: Path) -> None:
    assert whole.findings(tmp_path) == []
    file = tmp_path / f"{module}.py"
    file.write_text("answer = 42\n")
    (found,) = whole.findings(tmp_path)
    assert found["name"] == "shadowed-package"
    assert str(file) in found["evidence"]
    assert found["fix"].startswith(f"rename {file}, ")
    if module != "onnxruntime":
        assert str(file) in whole.said(
            RESIZE.replace("import numpy\n", "").replace('numpy.zeros((4, 4), "uint8")', "b''"),
            tmp_path,
        )
    else:
        assert str(file) in whole.said(RUN, tmp_path)
    file.rename(tmp_path / f"my_{module}.py")
    assert whole.findings(tmp_path) == []
    assert whole.said(RESIZE, tmp_path) == "(2, 2)\n"
    assert whole.said(RUN, tmp_path) == "CPU\n"


@pytest.mark.parametrize("visible", ["-1", "", "GPU-00000000-0000-0000-0000-000000000000"])
def test_a_variable_hides_nothing_where_there_is_nothing(
    whole: Doctor, visible: str, tmp_path: Path
) -> None:
    """On a machine without a GPU that is the cause, and no variable is."""
    if Path("/proc/driver/nvidia/version").exists():
        pytest.skip("this machine may have a GPU")
    assert whole.findings(tmp_path, CUDA_VISIBLE_DEVICES=visible) == []
    done = whole.python("-m", "devicecore", "devices", cwd=tmp_path, CUDA_VISIBLE_DEVICES=visible)
    (cuda,) = [line for line in done.stdout.splitlines() if line.split()[:1] == ["CUDA"]]
    assert cuda.split(maxsplit=2)[1:] == ["absent", "there is no NVIDIA GPU here"]
