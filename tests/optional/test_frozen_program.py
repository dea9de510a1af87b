"""A program that PyInstaller has frozen: it has what is imported by name, and no pip, no Python."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tomllib
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from devicecore.doctor import Finding
from devicecore.errors import MissingDependencyError, NotLiveError
from devicecore.liveness import Liveness

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).parents[2]
PLUGIN = ROOT / "tests" / "plugins" / "acme_npu"
GROUP = "pyinstaller40"

APP = """\
import json, subprocess, sys
from io import StringIO
started = []
start = subprocess.Popen.__init__
def watched(self, args, *further, **options):
    started.append(args)
    start(self, args, *further, **options)
subprocess.Popen.__init__ = watched

import numpy as np
import devicecore
from devicecore import cv, get_kernel
from devicecore.cli import main
from devicecore.errors import DeviceCoreError
from devicecore.onnx import OnnxModel
from devicecore.ort import provider_metadata
from devicecore.ort.tiny_model import tiny_model

best = devicecore.resolve()
cpu = devicecore.resolve("cpu", framework="onnx").device
model = OnnxModel(tiny_model())
result = cpu.compute(model, {"x": np.ones((2, 4), np.float32)})["y"]
resized = cv.resize(np.zeros((8, 8, 3), np.uint8), (4, 4))
image = np.zeros((8, 8), np.uint8)
said, codes = "", []
session = ["doctor", "--provider", "CPUExecutionProvider"]
for words in (["devices"], ["devices", "--json"], ["resolve"], ["doctor"], session):
    sys.stdout = StringIO()
    codes.append(main(words))
    said += sys.stdout.getvalue()
    sys.stdout = sys.__stdout__
try:
    devicecore.resolve("cuda")
except DeviceCoreError as error:
    said += str(error)
print(json.dumps({
    "best": best.device.device_type,
    "scaled": best.device.compute("acme_npu.scale", 6, 7),
    "result": result.shape,
    "resized": resized.shape,
    "threshold": float(cpu.compute("cv2.threshold", image, 1, 255, 0)[0]),
    "build": provider_metadata("CPUExecutionProvider").reason,
    "said": said + best.explain(),
    "codes": codes,
    "started": [str(words) for words in started],
}))
"""


def test_the_hook_is_where_the_entry_point_says() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    module, _, function = project["entry-points"][GROUP]["hook-dirs"].partition(":")
    (folder,) = getattr(import_module(module), function)()
    assert Path(folder, "hook-devicecore.py").is_file()


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="the program is started as on Linux")
def test_a_frozen_program_finds_its_devices_and_those_of_a_plugin(
    environment: Any, our_packages: Path, tmp_path: Path
) -> None:
    environment.pip("install", "pyinstaller", "numpy", "onnxruntime", "opencv-python-headless")
    (site,) = environment.python.parent.parent.glob("lib/python*/site-packages")
    for package in (*our_packages.iterdir(), *PLUGIN.iterdir()):
        shutil.copytree(package, site / package.name)
    _record(site)
    app = tmp_path / "app.py"
    app.write_text(APP)
    freeze = [environment.python, "-m", "PyInstaller", "--log-level", "ERROR", app]
    done = subprocess.run(freeze, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr

    shutil.rmtree(environment.python.parent.parent)  # nothing of it may be needed any more
    done = subprocess.run(
        [tmp_path / "dist" / "app" / "app"],
        cwd=tmp_path,
        env={
            **{name: text for name, text in os.environ.items() if name != "PYTHONPATH"},
            "DEVICECORE_CACHE_DIR": str(tmp_path / "cache"),
        },
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout.splitlines()[-1])
    assert (told["best"], told["scaled"]) == ("NPU", 42)
    assert told["result"] == [2, 4]
    assert told["resized"] == [4, 4, 3]
    assert told["threshold"] == 1.0
    assert told["build"].startswith("part of onnxruntime 1.")
    assert "no findings" in told["said"]
    assert "pip" not in told["said"]
    assert set(told["codes"]) == {0}
    assert told["started"] == []  # the program would have started itself


def _record(site: Path) -> None:
    """Write what pip would, had it installed our wheel into *site*."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    info = site / "devicecore-0.1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: devicecore\nVersion: 0.1\n")
    hooks = project["entry-points"][GROUP]["hook-dirs"]
    (info / "entry_points.txt").write_text(f"[{GROUP}]\nhook-dirs = {hooks}\n")


FIX = "pip install --upgrade torch, or python3 -m pip install 'numpy<2'; sudo apt install driver"
SAYERS: dict[str, Callable[[], str]] = {
    "liveness": lambda: Liveness("missing", reason="x", fix=FIX).fix,
    "finding": lambda: Finding("x", "y", "z", FIX).fix,
    "error": lambda: str(NotLiveError("CUDA", "missing", "it is not there", FIX)),
}


@pytest.mark.parametrize("sayer", SAYERS)
def test_no_fix_needs_pip(sayer: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert FIX in SAYERS[sayer]()
    monkeypatch.setattr("sys.frozen", True, raising=False)
    said = SAYERS[sayer]()
    assert "pip" not in said
    assert said.endswith("sudo apt install driver")


def test_an_error_without_another_fix_says_what_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.frozen", True, raising=False)
    said = str(MissingDependencyError("torch", "torch"))
    assert (
        said == "the package 'torch' is not installed; everything that does not need it still works"
    )
