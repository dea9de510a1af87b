"""Engines kept between processes, with ONNX Runtime's own optimised models as the real ones."""

from __future__ import annotations

import json
import logging
import pickle
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from devicecore.device import Device
from devicecore.errors import EngineCacheError, ModelError, NotLiveError
from devicecore.onnx import OnnxModel
from devicecore.ort import CPU_PROVIDER, SessionSpec, open_session
from devicecore.ort.build_notice import build_notice
from devicecore.ort.engine_cache import _checksums
from devicecore.ort.engines import keeps_engines
from devicecore.ort.model_digest import model_digest
from devicecore.ort.provider_options import Preferences, provider_options
from devicecore.ort.tiny_model import tiny_model

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

onnx = pytest.importorskip("onnx")
ort = pytest.importorskip("onnxruntime")

CPU = SessionSpec(CPU_PROVIDER)
X = np.linspace(-2, 2, 12, dtype=np.float32).reshape(3, 4)
OTHER_PROCESS = """\
import sys
import numpy as np
from devicecore.device import Device
from devicecore.onnx import OnnxModel
from devicecore.ort import CPU_PROVIDER, SessionSpec
device = Device("/device:CPU:0", session=SessionSpec(CPU_PROVIDER), frameworks=("onnx",))
x = np.linspace(-2, 2, 12, dtype=np.float32).reshape(3, 4)
print(device.compute(OnnxModel(sys.argv[1], cache="all"), {"x": x})["y"].tolist())
"""


def weighted_model(scale: float, *, place: str = "", note: str = "") -> Any:
    """Return a model of two nodes that can be fused: ``y = relu(scale * (x @ 1) + 1)``."""
    weights = onnx.numpy_helper.from_array(np.full((4, 4), scale, np.float32), "w")
    bias = onnx.numpy_helper.from_array(np.ones(4, np.float32), "b")
    ports = [onnx.helper.make_tensor_value_info(name, 1, ["n", 4]) for name in ("x", "y")]
    nodes = [
        onnx.helper.make_node("MatMul", ["x", "w"], ["xw"]),
        onnx.helper.make_node("Add", ["xw", "b"], ["s"]),
        onnx.helper.make_node("Relu", ["s"], ["y"]),
    ]
    graph = onnx.helper.make_graph(nodes, "weighted", ports[:1], ports[1:], [weights, bias])
    opset = [onnx.helper.make_opsetid("", 17)]
    model = onnx.helper.make_model(graph, opset_imports=opset, ir_version=9)
    if note:
        onnx.helper.set_model_props(model, {"note": note})
    if place:
        onnx.external_data_helper.convert_model_to_external_data(
            model, location=place, size_threshold=0
        )
    return model


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "weighted.onnx"
    onnx.save(weighted_model(2.0, note="carried"), path)
    return path


@pytest.fixture
def device() -> Device:
    return Device("/device:CPU:0", session=CPU, frameworks=("onnx",))


def kept_models(cache_dir: Path) -> list[Path]:
    return list(cache_dir.rglob("model.ort"))


def opened(model: Path | bytes, **options: Any) -> Any:
    return open_session(model, CPU, cache="all", **options)


def test_a_second_session_is_made_of_the_optimised_model(file: Path, cache_dir: Path) -> None:
    first = opened(file)
    (kept,) = kept_models(cache_dir)
    # Whatever stands there now is what a session is made of, if its checksum is right.
    replace(kept, file.with_name("other.onnx"), weighted_model(3.0))
    second = opened(file)
    assert second.run({"x": X})["y"] == pytest.approx(np.maximum(3 * X @ np.ones((4, 4)) + 1, 0))
    assert (second.nodes, first.live_nodes) == (first.nodes, first.total_nodes)
    assert kept_models(cache_dir) == [kept]


def replace(kept: Path, path: Path, model: Any) -> None:
    """Write the optimised form of *model* over *kept*, and its checksum."""
    onnx.save(model, path)
    options = ort.SessionOptions()
    options.log_severity_level = 3
    options.optimized_model_filepath = str(kept)
    options.add_session_config_entry("session.save_model_format", "ORT")
    ort.InferenceSession(path, options)
    seal(kept)


def seal(kept: Path) -> None:
    entry = kept.parents[1] / "entry.json"
    facts = json.loads(entry.read_text())
    entry.write_text(json.dumps(facts | {"files": _checksums(kept.parent)}))


def test_it_gives_the_same_and_carries_the_same_texts(file: Path, cache_dir: Path) -> None:
    plain = open_session(file, CPU)
    expected = plain.run({"x": X})["y"]
    for _ in range(2):
        session = opened(file)
        assert (session.run({"x": X})["y"] == expected).all()
        assert session.metadata == {"note": "carried"} == plain.metadata
        assert session.nodes == plain.nodes


def test_another_process_finds_it(file: Path, cache_dir: Path, device: Device) -> None:
    told = [
        subprocess.run(
            [sys.executable, "-c", OTHER_PROCESS, str(file)],
            capture_output=True,
            text=True,
            check=True,
        )
        for _ in range(2)
    ]
    assert [each.stderr for each in told] == ["", ""]
    expected = device.compute(OnnxModel(file), {"x": X})["y"].tolist()
    assert [json.loads(each.stdout) for each in told] == [expected, expected]
    assert len(kept_models(cache_dir)) == 1


def test_nothing_is_kept_where_nothing_is_compiled(
    file: Path, cache_dir: Path, device: Device
) -> None:
    for model in (OnnxModel(file), OnnxModel(file, cache="none")):
        device.compute(model, {"x": X})
    assert not cache_dir.exists()


def test_other_options_have_their_own(file: Path, cache_dir: Path) -> None:
    opened(file)
    opened(file, precision="default")
    opened(file, session_options={"session.disable_prepacking": "1"})
    opened(file, device="another machine")
    assert len(kept_models(cache_dir)) == 4


def test_what_no_longer_loads_is_made_anew(file: Path, cache_dir: Path) -> None:
    opened(file)
    (kept,) = kept_models(cache_dir)
    good = kept.read_bytes()
    kept.write_bytes(good[: len(good) // 2])
    seal(kept)
    assert opened(file).run({"x": X})["y"].shape == (3, 4)
    assert kept.read_bytes() == good


def test_what_is_asked_of_a_session_costs_no_engine(
    file: Path, cache_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened(file)
    (kept,) = kept_models(cache_dir)
    entry = kept.parents[1] / "entry.json"
    nodes = json.loads(entry.read_text()) | {"notes": {"nodes": {CPU_PROVIDER: 1, "other": 3}}}
    entry.write_text(json.dumps(nodes))
    before = kept.stat().st_mtime_ns
    with pytest.raises(NotLiveError, match="1 of the 4 nodes"):
        opened(file, min_nodes=1.0)
    assert kept.stat().st_mtime_ns == before
    assert opened(file, min_nodes=0.25).live_nodes == 1


def test_a_file_that_changed_after_it_was_read_is_not_kept(file: Path, cache_dir: Path) -> None:
    digest = model_digest(file)
    original = file.read_bytes()
    onnx.save(weighted_model(5.0), file)
    assert opened(file, digest=digest).run({"x": X})["y"].max() > 20
    assert kept_models(cache_dir) == []
    file.write_bytes(original)
    assert opened(file).run({"x": X})["y"] == pytest.approx(
        np.maximum(2 * X @ np.ones((4, 4)) + 1, 0)
    )


def test_a_model_that_was_pickled_is_read_anew(file: Path, device: Device) -> None:
    model = OnnxModel(file)
    digest = model.digest
    onnx.save(weighted_model(5.0), file)
    assert pickle.loads(pickle.dumps(model)).digest != digest


def test_a_faulty_model_is_named_and_leaves_nothing(cache_dir: Path, tmp_path: Path) -> None:
    path = tmp_path / "cut.onnx"
    path.write_bytes(weighted_model(1.0).SerializeToString()[:-40])
    with pytest.raises(ModelError, match=r"cut\.onnx"):
        opened(path)
    assert [path.suffix for path in cache_dir.joinpath("engines").iterdir()] == [".lock"]


def test_an_unusable_folder_is_one_clear_error(
    file: Path, device: Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DEVICECORE_CACHE_DIR", str(file))
    with pytest.raises(EngineCacheError, match=f"{file}/engines"):
        device.compute(OnnxModel(file, cache="all"), {"x": X})
    assert device.compute(OnnxModel(file), {"x": X})["y"].shape == (3, 4)


def test_a_policy_that_does_not_exist() -> None:
    with pytest.raises(ValueError, match="'engines' or 'all' or 'none'"):
        OnnxModel("model.onnx", cache="some")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("spec", "policy", "keeps"),
    [
        (CPU, "engines", False),
        (CPU, "all", True),
        (CPU, "none", False),
        (SessionSpec("CUDAExecutionProvider"), "all", False),
        (SessionSpec("TensorrtExecutionProvider"), "engines", True),
        (SessionSpec("TensorrtExecutionProvider"), "none", False),
        (SessionSpec("TensorrtExecutionProvider", {"trt_engine_cache_path": "/x"}), "all", False),
        (SessionSpec("OpenVINOExecutionProvider", {}, 0), "engines", True),
        (
            SessionSpec(
                "OpenVINOExecutionProvider", {"load_config": '{"CPU": {"CACHE_DIR": "/x"}}'}, 0
            ),
            "engines",
            False,
        ),
    ],
)
def test_which_engines_are_kept(spec: SessionSpec, policy: Any, keeps: bool) -> None:
    assert keeps_engines(spec, policy) is keeps


def test_each_provider_is_told_in_its_own_words() -> None:
    def told(spec: SessionSpec, device: str = "") -> dict[str, str]:
        wanted = Preferences("f32", "/engines", threads=2)
        return provider_options(spec, wanted, {"ov_device": device} if device else {})

    for device, threads in {"CPU": {"INFERENCE_NUM_THREADS": "2"}, "GPU.1": {}}.items():
        plugin = told(SessionSpec("OpenVINOExecutionProvider", {}, 0), device)
        own = {"INFERENCE_PRECISION_HINT": "f32", "CACHE_DIR": "/engines", **threads}
        assert json.loads(plugin.pop("load_config")) == {device: own}
        assert plugin == {}
    built_in = told(SessionSpec("OpenVINOExecutionProvider", {"device_type": "CPU"}))
    assert built_in == {
        "cache_dir": "/engines",
        "device_type": "CPU",
        "num_of_threads": "2",
        "precision": "FP32",
    }
    assert told(SessionSpec("TensorrtExecutionProvider", {"device_id": "1"})) == {
        "trt_engine_cache_enable": "1",
        "trt_engine_cache_path": "/engines",
        "trt_timing_cache_enable": "1",
        "trt_timing_cache_path": "/engines",
        "device_id": "1",
    }
    assert told(SessionSpec("CoreMLExecutionProvider")) == {
        "ModelCacheDirectory": "/engines",
        "ModelFormat": "MLProgram",
        "AllowLowPrecisionAccumulationOnGPU": "0",
    }


def test_weights_in_another_file_are_part_of_the_model(tmp_path: Path, device: Device) -> None:
    models = []
    for scale in (2.0, 3.0):
        folder = tmp_path / str(scale)
        folder.mkdir()
        onnx.save(weighted_model(scale, place="weights.bin"), folder / "m.onnx")
        models.append(OnnxModel(folder / "m.onnx"))
    assert len({model.model.read_bytes() for model in models}) == 1  # type: ignore[union-attr]
    assert models[0].digest != models[1].digest
    results = [device.compute(model, {"x": X})["y"] for model in models]
    for scale, result in zip((2, 3), results, strict=True):
        assert result == pytest.approx(np.maximum(scale * X @ np.ones((4, 4)) + 1, 0))


@pytest.mark.parametrize("size", [1, 127, 128, 255])
def test_a_long_name_of_such_a_file_is_read_whole(size: int, tmp_path: Path) -> None:
    name = "w" * size
    digests = set()
    for scale in (2.0, 3.0):
        onnx.save(weighted_model(scale, place=name), tmp_path / "m.onnx")
        digests.add(model_digest(tmp_path / "m.onnx"))
        (tmp_path / name).unlink()
    assert len(digests) == 2


def test_bytes_and_file_of_a_model_are_the_same(file: Path) -> None:
    assert model_digest(file) == model_digest(file.read_bytes())
    assert model_digest(tiny_model()) != model_digest(file)


def test_a_slow_build_is_announced(caplog: pytest.LogCaptureFixture) -> None:
    with build_notice("TensorrtExecutionProvider", "m.onnx", at_once=True):
        (said,) = [record.getMessage() for record in caplog.records]
    assert said.startswith("TensorrtExecutionProvider builds an engine for m.onnx, which may take")
    assert caplog.records[-1].getMessage().endswith("done after 0 s")
    assert {record.levelno for record in caplog.records} == {logging.WARNING}


def test_a_quick_build_is_not(caplog: pytest.LogCaptureFixture) -> None:
    with build_notice("OpenVINOExecutionProvider", "m.onnx", at_once=False):
        pass
    assert caplog.records == []


def test_a_build_that_goes_on_says_so(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("devicecore.ort.build_notice._PATIENCE_S", 0.0)
    with build_notice("OpenVINOExecutionProvider", "m.onnx", at_once=False):
        wait_until(lambda: bool(caplog.records))
    assert caplog.records[0].getMessage().endswith("m.onnx: 0 s so far")


def wait_until(condition: Callable[[], bool]) -> None:
    import time

    while not condition():
        time.sleep(0.01)
