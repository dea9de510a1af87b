"""NVIDIA's driver, asked through its library; a stand-in answers where there is no GPU.

The stand-in follows the driver's C interface. `tests/hardware/test_cuda.py` asks the real one.
"""

# ruff: noqa: N802 - the names are those of the driver's C interface

from __future__ import annotations

import ctypes
from typing import Any
from uuid import UUID

import pytest

from devicecore.errors import NotLiveError
from devicecore.liveness import hardware as _hardware
from devicecore_factories import _nvidia

UUIDS = [UUID(int=7), UUID(int=9)]
NAMES = [b"NVIDIA H200", b"NVIDIA H200 MIG 1g.18gb"]
OUT_OF_RANGE = 101


class Driver:
    """Answers as ``libcuda`` does: 0 for well done, results through pointers."""

    def __init__(self, count: int = 2, start: int = 0) -> None:
        self.count = count
        self.start = start

    def cuInit(self, flags: int) -> int:
        assert flags == 0
        return self.start

    def cuDeviceGetCount(self, count: Any) -> int:
        count._obj.value = self.count
        return 0

    def cuDeviceGet(self, device: Any, ordinal: int) -> int:
        device._obj.value = ordinal + 40  # a handle is not an ordinal
        return 0 if ordinal < self.count else OUT_OF_RANGE

    def cuDeviceGetName(self, name: Any, size: int, device: Any) -> int:
        name.value = NAMES[device.value - 40][: size - 1]
        return 0

    def cuDeviceGetPCIBusId(self, text: Any, size: int, device: Any) -> int:
        text.value = b"0000:3B:00.0"[: size - 1]
        return 0

    def cuDeviceTotalMem_v2(self, memory: Any, device: Any) -> int:
        memory._obj.value = 141 << 30
        return 0

    def cuDeviceGetUuid_v2(self, uuid: Any, device: Any) -> int:
        uuid._obj[:] = list(UUIDS[device.value - 40].bytes)
        return 0

    def cuDeviceGetAttribute(self, value: Any, which: int, device: Any) -> int:
        value._obj.value = {75: 9, 76: 0}[which]
        return 0

    def cuGetErrorString(self, code: int, text: Any) -> int:
        known = {100: b"no CUDA-capable device is detected", 803: b"system has unsupported driver"}
        text._obj.value = known.get(code)
        return 0 if code in known else 1


def install(monkeypatch: pytest.MonkeyPatch, driver: Driver) -> None:
    """Make *driver* the one that is loaded."""
    monkeypatch.setattr(ctypes, "CDLL", lambda name: driver)


def test_gpus_come_with_all_that_tells_them_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, Driver())
    whole, part = _nvidia.CudaDriver().gpus()
    assert (whole.index, whole.physical_id) == (0, f"GPU-{UUIDS[0]}")
    assert (part.index, part.physical_id) == (1, f"MIG-{UUIDS[1]}")
    assert whole.description == "NVIDIA H200"
    assert whole.memory_bytes == 141 << 30
    assert whole.details == {"pci_bus_id": "0000:3b:00.0", "compute_capability": "9.0"}


@pytest.mark.parametrize(
    ("code", "state", "words"),
    [
        (100, "absent", "no CUDA-capable device is detected (100)"),
        (803, "broken", "system has unsupported driver (803)"),
        (34, "missing", "error (34)"),
        (999, "broken", "error (999)"),
    ],
)
def test_a_driver_that_does_not_start_says_why(
    monkeypatch: pytest.MonkeyPatch, code: int, state: str, words: str
) -> None:
    install(monkeypatch, Driver(start=code))
    with pytest.raises(NotLiveError) as caught:
        _nvidia.CudaDriver()
    assert caught.value.state == state
    assert words in caught.value.reason


def test_a_driver_that_is_not_there_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(name: str) -> ctypes.CDLL:
        raise OSError(name)

    monkeypatch.setattr(ctypes, "CDLL", refuse)
    found = _nvidia.driver_metadata()
    assert found.state == "missing"
    assert "cannot be loaded" in found.reason
    assert "install" in found.fix
    with pytest.raises(NotLiveError, match="cannot be loaded"):
        _nvidia.CudaDriver()
    assert _nvidia.gpus_from_child() == ()


def test_this_machine_is_listed_by_a_child_process() -> None:
    """Real on both kinds of machine: with a driver a child starts it, without one there is none."""
    gpus = _nvidia.gpus_from_child()
    if _nvidia.driver_metadata().state == "untried" and _hardware.exists("dev/nvidia[0-9]*"):
        assert gpus
    assert [gpu.index for gpu in gpus] == list(range(len(gpus)))
