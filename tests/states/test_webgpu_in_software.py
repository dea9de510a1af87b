"""WebGPU on SwiftShader: its tests, and its devices on the command line, in processes of their own.

The loader of Vulkan reads its variables when a process starts.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

pytest.importorskip("onnxruntime_ep_webgpu", reason="onnxruntime-ep-webgpu is not installed")

TESTS = Path(__file__).parents[1]
VALUES = """\
import json, sys
import numpy as np
from devicecore import resolve
from devicecore.onnx import OnnxModel
model, (shape, name) = OnnxModel(sys.argv[1]), json.loads(sys.argv[2])
x = np.random.default_rng(0).random(shape, np.float32)
results = []
for wanted in ("webgpu:0", "cpu:0"):
    device = resolve(wanted, framework="onnx").device
    results.append(device.compute(model, {name: x}))
    session = model.session(device)
    print(device.device_type, session.live_nodes, session.total_nodes)
error = max(np.abs(a - b).max() for a, b in zip(*map(dict.values, results)))
print(error < 1e-5)
"""


def told(variables: dict[str, str], folder: Path, *command: str) -> str:
    """Return what a Python process prints that has SwiftShader."""
    path = os.pathsep.join(filter(None, sys.path))
    done = subprocess.run(
        [sys.executable, *command],
        env={
            **os.environ,
            **variables,
            "PYTHONPATH": path,
            "DEVICECORE_CACHE_DIR": str(folder / "cache"),
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_tests_that_need_an_adapter_pass(swiftshader: dict[str, str], tmp_path: Path) -> None:
    files = [str(TESTS / name) for name in ("factories/test_sessions.py", "onnx/test_arrays.py")]
    command = ["-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", "software or webgpu", *files]
    said = told(swiftshader, tmp_path, *command)
    passed = re.search(r"(\d+) passed", said)
    assert passed, said
    assert int(passed[1]) >= 6
    assert "no Vulkan driver" not in said


def test_it_is_live_and_taken_only_where_it_is_named(
    swiftshader: dict[str, str], tmp_path: Path
) -> None:
    def answer(*words: str) -> str:
        found = json.loads(told(swiftshader, tmp_path, "-m", "devicecore", *words, "--json"))
        return str(found["devices"] if "devices" in found else found["device"])

    assert "WEBGPU:0" not in answer("devices")
    assert "WEBGPU:0" not in answer("resolve", "--framework", "onnx")
    assert answer("resolve", "webgpu").endswith("/device:WEBGPU:0")


@pytest.mark.parametrize(
    ("model", "feed", "nodes"),
    [
        ("onnxruntime/datasets/mul_1.onnx", ([3, 2], "X"), 1),
        (
            "onnx/backend/test/data/light/light_squeezenet.onnx",
            ([1, 3, 224, 224], "data_0"),
            67,
        ),
    ],
    ids=["mul_1", "squeezenet"],
)
def test_it_computes_what_the_cpu_does(
    model: str,
    feed: tuple[list[int], str],
    nodes: int,
    swiftshader: dict[str, str],
    tmp_path: Path,
) -> None:
    spec = find_spec(model.partition("/")[0])
    assert spec
    assert spec.origin
    file = Path(spec.origin).parents[1] / model
    said = told(swiftshader, tmp_path, "-c", VALUES, str(file), json.dumps(feed)).splitlines()
    assert said[0] == f"WEBGPU {nodes} {nodes}"
    assert said[-1] == "True"
