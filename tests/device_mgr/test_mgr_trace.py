"""The manager and the set do what TensorFlow's own did, step by step.

The traces were recorded on TensorFlow 2.21's ``DynamicDeviceMgr`` and ``DeviceSet``. Where ours are
different on purpose, ``tests/data/mgr_differences.jsonl`` says what they answer and why; the last
test fails for a difference that is not needed any more.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from devicecore.device import Device
from devicecore.device_factory import FactoryRegistry, Registration
from devicecore.device_mgr import DeviceMgr
from devicecore.device_set import DeviceSet
from devicecore.errors import DeviceConflictError, HostCpuError, UnknownDeviceError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

DATA = Path(__file__).parents[1] / "data"
# The priorities of the factories in the recording.
PRIORITIES = {"d1": 50, "d2": 51, "d3": 49, "GPU": 200, "SYCL": 200, "MyNPU": 50, "CPU": 60}

Step = list[str]


def rows(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (DATA / name).read_text("utf-8").splitlines()]


TRACES = [row for row in rows("device_names.jsonl") if row["op"] == "mgr_trace"]
DIFFERENCES = rows("mgr_differences.jsonl")


def registry() -> FactoryRegistry:
    made = FactoryRegistry()
    for device_type, priority in PRIORITIES.items():
        made.register(Registration(device_type, "never:Imported", priority, "trace", device_type))
    return made


class Player:
    """Plays one trace on a manager and a set of ours."""

    def __init__(self) -> None:
        self.manager = DeviceMgr(registry=registry())
        self.set = DeviceSet(registry=registry())

    def play(self, step: Step) -> Any:
        operation: Callable[..., Any] = getattr(self, f"do_{step[0]}")
        try:
            answer = operation(*step[1:])
        except HostCpuError:
            return {"error": "host_cpu_not_removable"}
        except DeviceConflictError:
            return {"error": "name_conflict"}
        except UnknownDeviceError:
            return {"error": "unknown_device"}
        return "ok" if answer is None and step[0] not in NULLABLE else answer

    def do_add(self, *types_and_names: str) -> None:
        self.manager.add_devices([Device(name) for name in types_and_names[1::2]])

    def do_remove(self, *names: str) -> None:
        self.manager.remove_devices(
            [
                next((device for device in self.manager if device.name == name), Device(name))
                for name in names
            ]
        )

    def do_remove_by_name(self, *names: str) -> None:
        self.manager.remove_devices(names)

    def do_lookup(self, name: str) -> str:
        return self.manager.lookup_device(name).name

    def do_list(self) -> list[str]:
        return [attributes.name for attributes in self.manager.list_device_attributes()]

    def do_count(self, device_type: str) -> int:
        return self.manager.num_device_type(device_type)

    def do_host_cpu(self) -> str | None:
        return self.manager.host_cpu.name if self.manager.host_cpu else None

    def do_set_add(self, _: str, name: str) -> None:
        self.set.add_device(Device(name))

    def do_set_match(self, pattern: str) -> list[str]:
        return [device.name for device in self.set.find_matching_devices(pattern)]

    def do_set_find(self, name: str) -> str | None:
        found = self.set.find_device_by_name(name)
        return found.name if found else None

    def do_set_types(self) -> list[str]:
        return [device_type for device_type, _ in self.set.prioritized_device_types]

    def do_set_prioritized(self) -> list[list[str | int]]:
        return [[device.name, priority] for device, priority in self.set.prioritized_devices]


NULLABLE = {"host_cpu", "set_find"}


def played(trace: int) -> Iterator[tuple[int, Any, Any]]:
    """Yield the number of each step, our answer and TensorFlow's."""
    player = Player()
    recorded = TRACES[trace]
    for number, (step, answer) in enumerate(zip(recorded["in"], recorded["out"], strict=True)):
        yield number, player.play(step), answer


@pytest.mark.parametrize("trace", range(len(TRACES)))
def test_traces_are_tensorflows(trace: int) -> None:
    different = {row["step"]: row for row in DIFFERENCES if row["trace"] == trace}
    for number, ours, tensorflows in played(trace):
        expected = different[number]["ours"] if number in different else tensorflows
        assert ours == expected, TRACES[trace]["in"][number]


def test_all_traces_are_there() -> None:
    assert len(TRACES) == 24
    assert sum(len(trace["in"]) for trace in TRACES) == 197


@pytest.mark.parametrize(
    "difference", DIFFERENCES, ids=lambda row: f"trace {row['trace']} step {row['step']}"
)
def test_every_difference_is_needed(difference: dict[str, Any]) -> None:
    recorded = TRACES[difference["trace"]]
    step = difference["step"]
    assert recorded["in"][step] == difference["in"]
    assert recorded["out"][step] == difference["oracle"] != difference["ours"]
    assert len(difference["reason"].split()) > 3
