"""Every factory of ours: what importing and asking it costs, and that its answers say enough."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import devicecore_factories
from devicecore import discovery
from devicecore.device_factory import DeviceFactory, DeviceOptions, Registration
from devicecore.device_factory.prober import load

if TYPE_CHECKING:
    from devicecore.liveness import Liveness

OURS = [entry for entry in discovery.factories() if entry.distribution == "devicecore"]
FRAMEWORKS = ["torch", "onnxruntime", "numpy", "cv2", "openvino", "pynvml"]


def in_child(code: str) -> Any:
    """Run *code* in a bare process and return what it prints as JSON."""
    path = f"import sys; sys.path[:] = {sys.path!r}\n"
    run = subprocess.run(
        [sys.executable, "-c", path + code], capture_output=True, text=True, check=True
    )
    return json.loads(run.stdout)


def test_no_factory_module_imports_a_framework() -> None:
    folder = Path(str(devicecore_factories.__file__)).parent
    modules = [f"devicecore_factories.{file.stem}" for file in folder.glob("*.py")]
    assert {f"devicecore_factories.{name}" for name in ("cuda", "openvino", "webgpu")} < set(
        modules
    )
    code = f"""
import json
from importlib import import_module
for name in {modules!r}: import_module(name)
print(json.dumps([name for name in {FRAMEWORKS!r} if name in sys.modules]))
"""
    assert in_child(code) == []


def test_looking_imports_no_framework_and_starts_no_driver() -> None:
    """NVIDIA's driver opens its device files when it starts, so these would be among the files."""
    code = f"""
import json, os
from devicecore import discovery
from devicecore.device_factory.prober import load
for entry in discovery.factories():
    factory = load(entry)
    factory.probe()
    for framework in factory.frameworks: factory.probe(framework)
folder = "/proc/self/fd"
files = os.listdir(folder) if os.path.isdir(folder) else ()
opened = [os.path.realpath(f"{{folder}}/{{file}}") for file in files]
gpus = [path for path in opened if path.startswith(("/dev/nvidia", "/dev/dri", "/dev/kfd"))]
print(json.dumps([[name for name in {FRAMEWORKS!r} if name in sys.modules], gpus]))
"""
    assert in_child(code) == [[], []]


@pytest.mark.parametrize("entry", OURS, ids=lambda entry: entry.entry_name)
def test_the_class_states_what_the_table_says(entry: Registration) -> None:
    factory = load(entry)
    assert isinstance(factory, DeviceFactory)
    assert (factory.device_type, factory.priority) == (entry.device_type, entry.priority)
    assert set(factory.frameworks) <= {"torch", "onnx"}
    assert factory.frameworks
    assert factory.probe_timeout_s >= DeviceFactory.probe_timeout_s


@pytest.mark.parametrize("entry", OURS, ids=lambda entry: entry.entry_name)
def test_every_answer_says_why_in_one_line(entry: Registration) -> None:
    factory = load(entry)
    answer = factory.probe()
    each: list[Liveness] = [answer, *map(answer.of, factory.frameworks)]
    for found in each:
        assert found.state in {"live", "untried", "absent", "missing", "broken", "excluded"}
        assert found.reason
        assert "\n" not in found.reason + found.fix
    for framework in factory.frameworks:
        assert factory.probe(framework).state == answer.of(framework).state


@pytest.mark.parametrize("entry", OURS, ids=lambda entry: entry.entry_name)
def test_without_hardware_no_device_is_made(entry: Registration) -> None:
    factory = load(entry)
    made = factory.create_devices(DeviceOptions(visible={entry.device_type: ()}), "")
    assert len(made) == (entry.device_type == "CPU")
