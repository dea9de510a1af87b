"""WEBGPU on SwiftShader: what is known to be live is still not taken unnamed, and its memory.

Each test asks a process of its own, because the driver is found when a process starts.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytest.importorskip("onnxruntime_ep_webgpu", reason="onnxruntime-ep-webgpu is not installed")

MEMORY = """
import json
import numpy
from devicecore.onnx import OnnxModel
from devicecore.ort.tiny_model import INPUT, INPUT_VALUES, OUTPUT, expected_values, tiny_model
from devicecore.resolution import resolve
device = resolve("WEBGPU:0").device
empty = device.allocate((2, 3), "float32")
given = device.allocate((2, 4), "float32")
given.update_inplace(numpy.array(INPUT_VALUES, numpy.float32).reshape(2, 4))
result = device.compute(OnnxModel(tiny_model()), {INPUT: given})[OUTPUT]
values = result.numpy() if hasattr(result, "numpy") else result
device.close()
try:
    device.allocate((1,), "float32")
except Exception as error:
    after = type(error).__name__
print(json.dumps({
    "memory": [empty.device_name(), empty.shape(), given.device_name()],
    "device": [device.device_class, device.physical_id, device.priority, device.memory],
    "right": tuple(map(float, values.ravel())) == expected_values(),
    "after": after,
}))
"""


@pytest.fixture
def told(swiftshader: dict[str, str], cache_dir: Path) -> Callable[..., Any]:
    """Return a function that runs Python with SwiftShader, and gives the JSON that it prints."""

    def run(*words: str) -> Any:
        done = subprocess.run(
            [sys.executable, *words],
            env={
                "PATH": os.defpath,
                "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
                "DEVICECORE_CACHE_DIR": str(cache_dir),
                **swiftshader,
            },
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    return run


def command(told: Callable[..., Any], *words: str) -> Any:
    return told("-m", "devicecore", *words, "--json")


@pytest.mark.parametrize("framework", [(), ("--framework", "onnx")], ids=["any", "onnx"])
def test_it_is_not_taken_unless_it_is_named(
    told: Callable[..., Any], framework: tuple[str, ...]
) -> None:
    command(told, "resolve", "WEBGPU:0")  # evidence that it is live changes nothing
    found = command(told, "resolve", *framework)
    assert "WebGPU on CPU" not in found["description"]


def test_the_list_has_it_with_its_priority(told: Callable[..., Any]) -> None:
    command(told, "resolve", "WEBGPU:0")
    listed = command(told, "devices")
    (entry,) = [each for each in listed["candidates"] if "SoftwareWebGPU" in each["origin"]]
    assert (entry["device_type"], entry["priority"], entry["state"]) == ("WEBGPU", 40, "live")
    assert [gpu["device_class"] for gpu in entry["devices"]] == ["CPU"]


def test_values_lie_in_its_own_memory(told: Callable[..., Any]) -> None:
    found = told("-c", MEMORY)
    assert found["memory"] == ["webgpu", [2, 3], "webgpu"]
    assert found["device"] == ["CPU", "cpu", 40, None]
    assert found["right"]
    assert found["after"] == "DeviceGoneError"
