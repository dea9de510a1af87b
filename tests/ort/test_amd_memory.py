"""Tensors on AMD's GPUs for ONNX Runtime: its providers there are stand-ins, its devices real."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import onnxruntime  # type: ignore[import-untyped]
import pytest

from devicecore.errors import ModelError
from devicecore.onnx.arrays import ELEMENT_TYPES, Described
from devicecore.onnx.inputs import _check
from devicecore.onnx.ports import Port
from devicecore.ort import SessionSpec
from devicecore.ort.io_binding import memory_of, native_device_of

AMD, NVIDIA = 0x1002, 0x10DE


@pytest.mark.parametrize("provider", ["MIGraphXExecutionProvider", "ROCMExecutionProvider"])
@pytest.mark.parametrize(("device_id", "memory"), [(None, "cuda:0"), ("1", "cuda:1")])
def test_tensors_lie_in_the_gpus_own_memory(
    provider: str, device_id: str | None, memory: str
) -> None:
    spec = SessionSpec(provider, {"device_id": device_id} if device_id else {})
    assert memory_of(spec) == memory
    port = Port("x", ELEMENT_TYPES["tensor(float)"], (2,))
    _check("m", port, Described("torch", "float32", (2,), memory), memory_of(spec))
    with pytest.raises(ModelError, match="cuda:7"):
        _check("m", port, Described("torch", "float32", (2,), "cuda:7"), memory_of(spec))


@pytest.mark.parametrize("provider", ["MIGraphXExecutionProvider", "ROCMExecutionProvider"])
def test_a_build_for_amd_binds_memory_of_amd(
    monkeypatch: pytest.MonkeyPatch, provider: str
) -> None:
    monkeypatch.setattr(onnxruntime, "get_available_providers", lambda: [provider])
    device = native_device_of("cuda:1")
    assert (device.device_id(), device.vendor_id()) == (1, AMD)
    assert native_device_of("cpu").vendor_id() == 0


def test_an_old_build_for_amd_has_no_makers(monkeypatch: pytest.MonkeyPatch) -> None:
    def make(kind: str, index: int) -> Any:
        return SimpleNamespace(_get_c_device=lambda: (kind, index))

    monkeypatch.setattr(onnxruntime, "get_available_providers", lambda: ["ROCMExecutionProvider"])
    monkeypatch.setattr(onnxruntime, "OrtDevice", SimpleNamespace(make=make))
    assert native_device_of("cuda:1") == ("cuda", 1)


def test_other_builds_bind_memory_of_nvidia() -> None:
    assert native_device_of("cuda:0").vendor_id() in {0, NVIDIA}
