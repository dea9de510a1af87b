"""What a model costs on the CPU, beside ONNX Runtime's own ``run`` and beside a copy in memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from devicecore.device import Device
from devicecore.onnx import OnnxModel
from devicecore.optional import package_dir
from devicecore.ort import CPU_PROVIDER, SessionSpec
from devicecore.ort.tiny_model import expected_values, tiny_model

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from devicecore.ort import CachePolicy

X = np.array([[1, -2, 3, 0], [-1, 2, 0, 4]], np.float32)
LARGE = (1, 3, 1024, 1024)  # 12.6 MB


@pytest.fixture
def device() -> Device:
    return Device("/device:CPU:0", session=SessionSpec(CPU_PROVIDER), frameworks=("onnx",))


def large_model() -> bytes:
    onnx = pytest.importorskip("onnx")
    ports = [onnx.helper.make_tensor_value_info(name, 1, list(LARGE)) for name in ("x", "y")]
    graph = onnx.helper.make_graph(
        [onnx.helper.make_node("Relu", ["x"], ["y"])], "large", ports[:1], ports[1:]
    )
    opset = [onnx.helper.make_opsetid("", 17)]
    model = onnx.helper.make_model(graph, opset_imports=opset, ir_version=9)
    return bytes(model.SerializeToString())


def bench_onnx_tiny(device: Device, statement: Callable[..., None]) -> None:
    model, feeds = OnnxModel(tiny_model()), {"x": X}
    assert tuple(device.compute(model, feeds)["y"].ravel()) == expected_values()
    statement("device.compute(model, feeds)", device=device, model=model, feeds=feeds)


def bench_onnx_tiny_torch(device: Device, statement: Callable[..., None]) -> None:
    torch = pytest.importorskip("torch")
    model, feeds = OnnxModel(tiny_model()), {"x": torch.from_numpy(X)}
    assert tuple(device.compute(model, feeds)["y"].numpy().ravel()) == expected_values()
    statement("device.compute(model, feeds)", device=device, model=model, feeds=feeds)


def bench_onnx_tiny_value(device: Device, statement: Callable[..., None]) -> None:
    onnxruntime = pytest.importorskip("onnxruntime")
    model = OnnxModel(tiny_model())
    feeds = {"x": onnxruntime.OrtValue.ortvalue_from_numpy(X)}
    assert tuple(device.compute(model, feeds)["y"].numpy().ravel()) == expected_values()
    statement("device.compute(model, feeds)", device=device, model=model, feeds=feeds)


def bench_peer_onnxruntime_tiny(device: Device, statement: Callable[..., None]) -> None:
    session = OnnxModel(tiny_model()).session(device).session
    feeds = {"x": X}
    assert tuple(session.run(None, feeds)[0].ravel()) == expected_values()
    statement("session.run(None, feeds)", session=session, feeds=feeds)


def bench_peer_onnxruntime_tiny_value(device: Device, statement: Callable[..., None]) -> None:
    onnxruntime = pytest.importorskip("onnxruntime")
    session = OnnxModel(tiny_model()).session(device).session
    feeds = {"x": onnxruntime.OrtValue.ortvalue_from_numpy(X)}
    statement("run(None, feeds)", run=session.run_with_ort_values, feeds=feeds)


def bench_onnx_large(device: Device, benchmark: Any) -> None:
    model, feeds = OnnxModel(large_model()), {"x": np.ones(LARGE, np.float32)}
    assert device.compute(model, feeds)["y"].sum() == np.prod(LARGE)
    benchmark.pedantic(device.compute, (model, feeds), rounds=200, warmup_rounds=5)


def bench_peer_onnxruntime_large(device: Device, benchmark: Any) -> None:
    session = OnnxModel(large_model()).session(device).session
    feeds = {"x": np.ones(LARGE, np.float32)}
    benchmark.pedantic(session.run, (None, feeds), rounds=200, warmup_rounds=5)


@pytest.mark.parametrize("cache", ["none", "all"])
def bench_onnx_load(
    cache: CachePolicy, benchmark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    models = package_dir("rapidocr")
    if models is None:
        pytest.skip("rapidocr is not installed: it brings the model")
    monkeypatch.setenv("DEVICECORE_CACHE_DIR", str(tmp_path))
    path = models / "models" / "PP-OCRv6_rec_small.onnx"

    def load() -> int:
        device = Device("/device:CPU:0", session=SessionSpec(CPU_PROVIDER), frameworks=("onnx",))
        return OnnxModel(path, cache=cache).session(device).live_nodes

    assert benchmark.pedantic(load, rounds=20, warmup_rounds=2) > 0


def bench_peer_memory_copy(benchmark: Any) -> None:
    benchmark.pedantic(np.ones(LARGE, np.float32).copy, rounds=200, warmup_rounds=5)
