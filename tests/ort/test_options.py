"""Options of providers and sessions: what would be ignored is refused, the rest arrives."""

import logging
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper
from onnx.external_data_helper import set_external_data
from packaging.version import Version

from devicecore import config
from devicecore.device import Device
from devicecore.errors import ModelError, NotLiveError, OutOfMemoryError
from devicecore.onnx import OnnxModel, session_options
from devicecore.ort import CPU_PROVIDER, SessionSpec, open_session
from devicecore.ort.known_options import check_provider_options, check_session_options
from devicecore.ort.tiny_model import expected_values, tiny_model

ort = pytest.importorskip("onnxruntime")
CPU = SessionSpec(CPU_PROVIDER)
X = np.array([[1, -2, 3, 0], [-1, 2, 0, 4]], np.float32)


@pytest.fixture
def device() -> Device:
    return Device("/device:CPU:0", session=CPU, frameworks=("onnx",))


def test_an_option_that_the_cpu_would_ignore_is_an_error(device: Device) -> None:
    model = OnnxModel(tiny_model(), provider_options={CPU_PROVIDER: {"threads": "4"}})
    with pytest.raises(ModelError, match="CPUExecutionProvider ignores the option 'threads'"):
        device.compute(model, {"x": X})


def test_options_of_other_providers_do_not_matter(device: Device) -> None:
    model = OnnxModel(tiny_model(), provider_options={"CUDAExecutionProvider": {"a": "b"}})
    assert tuple(device.compute(model, {"x": X})["y"].ravel()) == expected_values()


def test_the_openvino_plugin_takes_one_option_only() -> None:
    spec = SessionSpec("OpenVINOExecutionProvider", {}, 0)
    check_provider_options("m", spec, ["load_config"])
    for name in ("device_type", "cache_dir", "precision"):
        with pytest.raises(ModelError, match=f"ignores the option '{name}'; it knows load_config"):
            check_provider_options("m", spec, [name])


@pytest.mark.parametrize("text", ["{bad", "[1]", '{"CPU": 3}', "/a/file.json", "1"])
def test_a_load_config_that_is_none_is_the_programs_fault(text: str) -> None:
    spec = SessionSpec("OpenVINOExecutionProvider", {}, 0)
    with pytest.raises(ModelError, match=r"load_config is .* no JSON with the options of each"):
        check_provider_options("m", spec, {"load_config": text})
    check_provider_options("m", spec, {"load_config": '{"CPU": {"CACHE_DIR": "x"}}'})


def test_openvino_takes_its_config_as_a_mapping_too() -> None:
    given: dict[str, Any] = {"OpenVINOExecutionProvider": {"load_config": {"CPU": {"A": "1"}}}}
    options = OnnxModel(tiny_model(), provider_options=given).provider_options
    assert options["OpenVINOExecutionProvider"]["load_config"] == '{"CPU": {"A": "1"}}'


def test_a_property_that_openvino_lacks_is_the_programs_fault() -> None:
    pytest.importorskip("onnxruntime_ep_openvino", reason="no OpenVINO plug-in")
    given: dict[str, Any] = {"OpenVINOExecutionProvider": {"load_config": {"CPU": {"FOO": "1"}}}}
    model = OnnxModel(tiny_model(), provider_options=given)
    with pytest.raises(
        ModelError, match=r"Unsupported property FOO.*leave the option out"
    ) as caught:
        model.session("openvino")
    assert "\n" not in str(caught.value)


def test_what_webgpu_knows_stands_in_its_library() -> None:
    package = pytest.importorskip("onnxruntime_ep_webgpu", reason="no WebGPU plug-in")
    spec = SessionSpec("WebGpuExecutionProvider", {}, 0, package.get_library_path())
    check_provider_options("m", spec, ["preferredLayout", "powerPreference", "enableGraphCapture"])
    with pytest.raises(ModelError, match="ignores the option 'preferedLayout'"):
        check_provider_options("m", spec, ["preferedLayout"])


def test_an_unknown_provider_is_refused_at_once() -> None:
    with pytest.raises(
        ValueError, match=r"no provider is called 'cuda'; known are CPUExecution.*mean CUDAEx"
    ):
        OnnxModel(tiny_model(), provider_options={"cuda": {}})


def test_a_session_entry_that_would_be_ignored_is_an_error(device: Device) -> None:
    known = "session.disable_prepacking"
    model = OnnxModel(tiny_model(), session_options={known: "1"})
    used = model.session(device).session.get_session_options()
    assert used.get_session_config_entry(known) == "1"
    wrong = OnnxModel(tiny_model(), session_options={"session.disable_prepaking": "1"})
    with pytest.raises(ModelError, match=r"onnxruntime \S+ ignores the option 'session.disable_p"):
        device.compute(wrong, {"x": X})


def test_a_library_whose_texts_cannot_be_read_refuses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    packed = tmp_path / "packed.so"
    packed.write_bytes(b"\x7fELF" + bytes(range(256)))
    monkeypatch.setattr("devicecore.ort.known_options._runtime", lambda: packed)
    check_session_options("m", SessionSpec(CPU_PROVIDER), ["session.anything"])


@pytest.mark.parametrize(
    "name",
    ["disable_prepacking", "x", "", "inter_op_num", "execution_ord", "ep.foo.bar"],
)
def test_a_part_of_an_entry_is_no_entry(name: str) -> None:
    with pytest.raises(ModelError, match="ignores the option"):
        check_session_options("m", SessionSpec(CPU_PROVIDER), [name])


def test_a_providers_options_may_be_entries() -> None:
    package = pytest.importorskip("onnxruntime_ep_webgpu", reason="no WebGPU plug-in")
    spec = SessionSpec("WebGpuExecutionProvider", {}, 0, package.get_library_path())
    own = "ep.webgpuexecutionprovider"
    check_session_options("m", spec, [f"{own}.preferredLayout", "ep.context_enable"])
    for wrong in (f"{own}.ferredLayout", "ep.cudaexecutionprovider.device_id"):
        with pytest.raises(ModelError, match="ignores the option"):
            check_session_options("m", spec, [wrong])


def test_models_with_other_options_have_other_sessions(device: Device) -> None:
    plain = OnnxModel(tiny_model())
    one = OnnxModel(tiny_model(), threads=1)
    entry = OnnxModel(tiny_model(), session_options={"session.disable_prepacking": "1"})
    assert len({id(model.session(device)) for model in (plain, one, entry)}) == 3
    assert one.session(device).session.get_session_options().intra_op_num_threads == 1
    with pytest.raises(ValueError, match="threads is 0"):
        OnnxModel(tiny_model(), threads=0)


SPINNING = "session.intra_op.allow_spinning"


def spins(options: Any) -> bool:
    try:
        return bool(options.get_session_config_entry(SPINNING) != "0")
    except Exception:  # noqa: BLE001 - ONNX Runtime raises its own class where there is no entry
        return True


def test_threads_follow_what_may_be_used(monkeypatch: pytest.MonkeyPatch, device: Device) -> None:
    monkeypatch.setattr(config, "effective_cpu_count", lambda: 2)
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    free = open_session(tiny_model(), CPU).session.get_session_options()
    assert (free.intra_op_num_threads, spins(free)) == (2, True)
    more = open_session(tiny_model(), CPU, threads=3).session.get_session_options()
    assert (more.intra_op_num_threads, spins(more)) == (3, False)
    monkeypatch.setattr(os, "cpu_count", lambda: 8)
    limited = open_session(tiny_model(), CPU).session.get_session_options()
    assert (limited.intra_op_num_threads, spins(limited)) == (2, False)


def test_ones_own_session_gets_the_provider_and_the_threads(device: Device) -> None:
    options = session_options(device, threads=1)
    assert options.intra_op_num_threads == 1
    session = ort.InferenceSession(tiny_model(), options, enable_fallback=0)
    assert tuple(session.run(None, {"x": X})[0].ravel()) == expected_values()


def test_ones_own_session_reaches_a_plugin() -> None:
    package = pytest.importorskip("nxrt_ep_cpu", reason="no plug-in provider is installed")
    spec = SessionSpec("cpu_ep", {}, 0, package.get_library_path())
    options = session_options(Device("/device:NPU:0", device_class="NPU", session=spec))
    session = ort.InferenceSession(tiny_model(), options, enable_fallback=0)
    assert session.get_providers()[0] == "cpu_ep"
    assert tuple(session.run(None, {"x": X})[0].ravel()) == expected_values()


def test_a_device_without_a_provider_has_no_options() -> None:
    with pytest.raises(NotLiveError, match="ONNX Runtime has no provider for it"):
        session_options(Device("/device:NPU:0", device_class="NPU"))


def model_of(tmp_path: Path, where: str, *, length: int = 16, **versions: int) -> Path:
    """Return a model whose weights lie in the file *where*; none if that is empty."""
    weights = helper.make_tensor("w", TensorProto.FLOAT, [4], b"\0" * 16, raw=True)
    if where:
        set_external_data(weights, where, offset=0, length=length)
        weights.ClearField("raw_data")
        weights.data_location = TensorProto.EXTERNAL
    graph = helper.make_graph(
        [helper.make_node("Add", ["x", "w"], ["y"])],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [4])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [4])],
        [weights],
    )
    opset = [helper.make_opsetid("", versions.get("opset", 13))]
    model = helper.make_model(graph, opset_imports=opset, ir_version=versions.get("ir", 8))
    file = tmp_path / "model.onnx"
    file.write_bytes(model.SerializeToString())
    return file


@pytest.mark.parametrize(
    ("versions", "words"),
    [
        ({"opset": 99}, r"it is of opset 99, this onnxruntime takes up to \d+;"),
        ({"ir": 99}, r"it is of IR version 99, this onnxruntime takes up to \d+;"),
    ],
    ids=["opset", "ir"],
)
def test_a_model_too_new_is_told_with_both_numbers(
    versions: dict[str, int], words: str, tmp_path: Path
) -> None:
    with pytest.raises(ModelError, match=words):
        open_session(model_of(tmp_path, "", **versions), CPU)


REFUSED = {"../w.bin", "link.bin", "absolute"}


@pytest.mark.parametrize("where", ["gone.bin", "short.bin", *sorted(REFUSED)])
def test_weights_that_cannot_be_had_are_told(where: str, tmp_path: Path) -> None:
    if where in REFUSED and Version(ort.__version__) < Version("1.24"):
        pytest.skip("this onnxruntime reads weights from anywhere")
    folder = tmp_path / "model"
    folder.mkdir()
    outside = tmp_path / "w.bin"
    outside.write_bytes(b"\0" * 16)
    (folder / "short.bin").write_bytes(b"\0")
    (folder / "link.bin").symlink_to(outside)
    file = model_of(folder, str(outside) if where == "absolute" else where)
    with pytest.raises(ModelError, match="weights in other files") as caught:
        open_session(file, CPU)
    assert "\n" not in str(caught.value)
    assert "/onnxruntime_src" not in str(caught.value)


def test_weights_beside_the_model_are_found(tmp_path: Path) -> None:
    (tmp_path / "w.bin").write_bytes(np.full(4, 2, np.float32).tobytes())
    file = model_of(tmp_path, "w.bin")
    result = open_session(file, CPU).run({"x": np.ones(4, np.float32)})
    assert result["y"].tolist() == [3, 3, 3, 3]


def test_too_little_memory_is_told_as_such(device: Device) -> None:
    graph = helper.make_graph(
        [helper.make_node("ConstantOfShape", ["n"], ["y"])],
        "g",
        [helper.make_tensor_value_info("n", TensorProto.INT64, [1])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n"])],
    )
    opset = [helper.make_opsetid("", 13)]
    model = helper.make_model(graph, opset_imports=opset, ir_version=8).SerializeToString()
    huge = {"n": np.array([1 << 45])}
    with pytest.raises(OutOfMemoryError, match="Failed to allocate memory"):
        device.compute(OnnxModel(model), huge)
    with pytest.raises(OutOfMemoryError, match="Failed to allocate memory"):
        open_session(model, CPU).run(huge)


def test_nothing_is_said_about_a_model_at_fault(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    for where, versions in (("", {"opset": 99}), ("gone.bin", {}), ("", {"ir": 99})):
        with pytest.raises(ModelError):
            open_session(model_of(tmp_path, where, **versions), CPU)
    assert capfd.readouterr() == ("", "")
    assert [each for each in caplog.records if each.levelno >= logging.INFO] == []


def test_providers_count_in_any_case() -> None:
    given: dict[str, dict[str, object]] = {"cudaexecutionprovider": {"use_tf32": 0}}
    options = OnnxModel(tiny_model(), provider_options=given).provider_options
    assert options == {"CUDAExecutionProvider": {"use_tf32": "0"}}
    with pytest.raises(ValueError, match="given twice"):
        OnnxModel(tiny_model(), provider_options={**given, "CUDAExecutionProvider": {}})
