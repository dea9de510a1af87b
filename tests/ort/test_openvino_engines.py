"""OpenVINO for real: engines that are kept, precisions kept apart, and arrays that it refuses."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from devicecore.device import Device
from devicecore.errors import NotLiveError
from devicecore.onnx import OnnxModel
from devicecore.optional import package_dir
from devicecore.ort import (
    CPU_PROVIDER,
    PROVIDERS,
    SessionSpec,
    ep_devices,
    plugin_library,
    register,
)

if TYPE_CHECKING:
    from pathlib import Path

    from devicecore.ort import Precision

PROVIDER = "OpenVINOExecutionProvider"
SIZES = {"x": [2, 0, 4], "y": [1, 1, 1]}
LINE = np.random.default_rng(0).random((1, 3, 48, 320), np.float32) * 2 - 1


def openvino_spec() -> SessionSpec:
    """Return how sessions are opened on OpenVINO's CPU, or skip."""
    pytest.importorskip("onnxruntime")
    plugin = PROVIDERS[PROVIDER].plugin
    library = plugin_library(plugin) if plugin else None
    if library is None:
        pytest.skip("onnxruntime-ep-openvino is not installed")
    try:
        register(library)
    except NotLiveError as error:
        pytest.skip(str(error))
    for device in ep_devices(PROVIDER):
        if device.metadata.get("ov_device") == "CPU":
            return SessionSpec(PROVIDER, {}, device.index, str(library))
    pytest.skip("the OpenVINO plug-in offers no device for this CPU")


@pytest.fixture
def recogniser() -> Path:
    folder = package_dir("rapidocr")
    if folder is None:
        pytest.skip("rapidocr is not installed: it brings the model")
    return folder / "models" / "PP-OCRv6_rec_small.onnx"


def device(spec: SessionSpec) -> Device:
    name = "/device:OPENVINO:0" if spec.is_plugin else "/device:CPU:0"
    return Device(name, session=spec, frameworks=("onnx",))


def output(path: Path, spec: SessionSpec, **options: Any) -> Any:
    """Return what a session that is opened anew gives."""
    (result,) = OnnxModel(path, **options)(device(spec), feeds(path)).values()
    return result


def feeds(path: Path) -> dict[str, Any]:
    (port,) = OnnxModel(path).session(device(SessionSpec(CPU_PROVIDER))).session.get_inputs()
    return {port.name: LINE}


def test_a_compiled_model_is_kept_and_gives_the_same(recogniser: Path, cache_dir: Path) -> None:
    spec = openvino_spec()
    first = output(recogniser, spec)
    kept = {path: path.stat().st_mtime_ns for path in cache_dir.rglob("*.blob")}
    assert len(kept) == 1
    second = output(recogniser, spec)
    assert {path: path.stat().st_mtime_ns for path in cache_dir.rglob("*.blob")} == kept
    np.testing.assert_array_equal(second, first)
    np.testing.assert_allclose(first, output(recogniser, SessionSpec(CPU_PROVIDER)), atol=1e-4)


@pytest.mark.parametrize("order", [("f32", "default", "f32"), ("default", "f32", "default")])
def test_precisions_never_meet_in_the_cache(
    recogniser: Path, cache_dir: Path, order: tuple[Precision, ...]
) -> None:
    """OpenVINO 2026.4's key leaves the precision out: float32 before bfloat16 gave NaN."""
    spec = openvino_spec()
    (found,) = (each for each in ep_devices(PROVIDER) if each.index == spec.ep_device_index)
    if "BF16" not in str(found.metadata):
        pytest.skip("this CPU has no bfloat16")
    apart = {
        precision: output(recogniser, spec, precision=precision, cache="none")
        for precision in set(order)
    }
    assert not np.array_equal(apart["f32"], apart["default"])
    for precision in order:
        result = output(recogniser, spec, precision=precision)
        np.testing.assert_array_equal(result, apart[precision])
        assert np.isfinite(result).all()
    assert len(list(cache_dir.glob("engines/*/entry.json"))) == 2


def test_a_damaged_blob_is_compiled_anew(recogniser: Path, cache_dir: Path) -> None:
    spec = openvino_spec()
    expected = output(recogniser, spec)
    (blob,) = cache_dir.rglob("*.blob")
    content = bytearray(blob.read_bytes())
    content[len(content) // 2] ^= 1  # OpenVINO takes it as it is
    blob.write_bytes(content)
    np.testing.assert_array_equal(output(recogniser, spec), expected)


@pytest.mark.parametrize("kind", ["numpy", "torch"])
def test_an_array_without_elements_is_taken(kind: str, cache_dir: Path) -> None:
    """At no address, as memory of its own for nothing is, OpenVINO refuses it."""
    helper = pytest.importorskip("onnx").helper
    ports = [helper.make_tensor_value_info(name, 1, shape) for name, shape in SIZES.items()]
    graph = helper.make_graph(
        [helper.make_node("ReduceSum", ["x"], ["y"])], "sum", ports[:1], ports[1:]
    )
    opset = [helper.make_opsetid("", 17)]
    made = helper.make_model(graph, opset_imports=opset, ir_version=9)
    model = OnnxModel(made.SerializeToString())
    x: Any = np.zeros(SIZES["x"], np.float32)
    if kind == "torch":
        x = pytest.importorskip("torch").from_numpy(x)
    place = device(openvino_spec())
    for _ in range(3):
        assert place.compute(model, {"x": x})["y"].item() == 0.0
