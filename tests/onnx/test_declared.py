"""Inputs and outputs of a model, its unknown operators, and attributes of its sessions."""

from __future__ import annotations

import pickle
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper

from devicecore.device import Device
from devicecore.errors import ModelError
from devicecore.onnx import OnnxModel, ValueInfo, session_options
from devicecore.ort import CPU_PROVIDER, SessionSpec
from devicecore.ort.tiny_model import tiny_model

ort = pytest.importorskip("onnxruntime")
X = np.array([[1, -2, 3, 0], [-1, 2, 0, 4]], np.float32)
tensor, info = helper.make_tensor_value_info, ValueInfo


@pytest.fixture
def device() -> Device:
    return Device("/device:CPU:0", session=SessionSpec(CPU_PROVIDER), frameworks=("onnx",))


def built(
    nodes: Any, inputs: Any, outputs: Any, weights: Any = (), *, ir: int = 8, **opsets: int
) -> bytes:
    graph = helper.make_graph(nodes, "g", inputs, outputs, list(weights))
    imported = [
        helper.make_opsetid(name.replace("_", "."), number) for name, number in opsets.items()
    ]
    model = helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", 17), *imported], ir_version=ir
    )
    data: bytes = model.SerializeToString()
    return data


def identity(kind: int, shape: Any) -> bytes:
    node = helper.make_node("Identity", ["x"], ["y"])
    return built([node], [tensor("x", kind, shape)], [tensor("y", kind, shape)])


@pytest.mark.parametrize(
    ("kind", "shape", "expected"),
    [
        (TensorProto.FLOAT, ["n", 3, None], info("x", "float32", ("n", 3, None))),
        (TensorProto.INT64, [], info("x", "int64", ())),
        (TensorProto.DOUBLE, None, info("x", "float64", None)),
        (TensorProto.STRING, [2], info("x", "string", (2,))),
        (TensorProto.BFLOAT16, [0], info("x", "bfloat16", (0,))),
        (TensorProto.BOOL, [-1, 4], info("x", "bool", (None, 4))),
        (TensorProto.FLOAT8E4M3FN, ["größe"], info("x", "float8_e4m3fn", ("größe",))),
    ],
)
def test_tensors_as_they_are_declared(kind: int, shape: Any, expected: ValueInfo) -> None:
    model = OnnxModel(identity(kind, shape))
    assert model.inputs == (expected,)
    assert model.outputs == (info("y", expected.dtype, expected.shape),)


def test_what_is_no_tensor_has_the_words_of_onnx() -> None:
    sequence = helper.make_tensor_sequence_value_info("s", TensorProto.FLOAT, None)
    node = helper.make_node("SequenceAt", ["s", "i"], ["y"])
    data = built(
        [node],
        [sequence, tensor("i", TensorProto.INT64, [])],
        [tensor("y", TensorProto.FLOAT, None)],
    )
    assert OnnxModel(data).inputs == (
        info("s", "sequence(tensor(float32))", None),
        info("i", "int64", ()),
    )


@pytest.mark.parametrize(
    ("version", "optional"), [(3, ()), (8, (info("w", "float32", (4,), False),))]
)
def test_an_input_with_a_default_need_not_be_given(
    version: int, optional: tuple[ValueInfo, ...]
) -> None:
    node = helper.make_node("Add", ["x", "w"], ["y"])
    weight = helper.make_tensor("w", TensorProto.FLOAT, [4], [1.0] * 4)
    inputs = [tensor("w", 1, [4]), tensor("x", 1, ["n", 4])]
    data = built([node], inputs, [tensor("y", 1, ["n", 4])], [weight], ir=version)
    assert OnnxModel(data).inputs == (info("x", "float32", ("n", 4)), *optional)


def test_the_session_says_the_same(device: Device) -> None:
    model = OnnxModel(tiny_model())
    session = model.session(device).session
    for declared, told in (
        (model.inputs, session.get_inputs()),
        (model.outputs, session.get_outputs()),
    ):
        assert [(each.name, list(each.shape or ())) for each in declared] == [
            (each.name, each.shape) for each in told
        ]


def test_neither_a_session_nor_onnxruntime_is_needed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "m.onnx"
    file.write_bytes(tiny_model())
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    model = OnnxModel(file)
    assert [each.name for each in (*model.inputs, *model.outputs)] == ["x", "y"]
    assert pickle.loads(pickle.dumps(model)).inputs == model.inputs


def test_a_model_in_the_runtimes_own_format_is_asked(tmp_path: Path) -> None:
    options = ort.SessionOptions()
    options.optimized_model_filepath = str(tmp_path / "m.ort")
    options.add_session_config_entry("session.save_model_format", "ORT")
    ort.InferenceSession(tiny_model(), options, providers=[CPU_PROVIDER])
    model = OnnxModel(tmp_path / "m.ort")
    assert model.inputs == (info("x", "float32", (2, 4)),)
    assert model.outputs == (info("y", "float32", (2, 4)),)


@pytest.mark.parametrize(
    "data",
    [b"no model at all", tiny_model()[:-7], b"\x00" * 64, b"\x08\x08", b"\xff" * 40, b"{}"],
    ids=["text", "cut short", "zeros", "no graph", "ones", "JSON"],
)
def test_what_is_no_model_is_one_error(data: bytes) -> None:
    with pytest.raises(ModelError, match="no ONNX model"):
        _ = OnnxModel(data).inputs


# --- unknown operators ----------------------------------------------------------------------------


def with_operator(domain: str, version: int = 1) -> bytes:
    node = helper.make_node("Frob", ["x"], ["y"], domain=domain)
    imported = {domain.replace(".", "_"): version} if domain and version else {}
    return built([node], [tensor("x", 1, [2, 4])], [tensor("y", 1, None)], **imported)


@pytest.mark.parametrize(
    ("domain", "fix"),
    [
        ("acme.ops", r"OnnxModel\(custom_op_libraries=\[path\]\)"),
        ("mmdeploy", "register_custom_ops_library"),
        ("com.microsoft.extensions", "pip install onnxruntime-extensions"),
        ("ai.onnx.contrib", r"onnxruntime_extensions.get_library_path\(\)"),
        ("com.microsoft", "pip install --upgrade onnxruntime"),
        ("", "export the model with operators of ONNX"),
    ],
)
def test_an_unknown_operator_is_named_with_its_domain(
    device: Device, domain: str, fix: str
) -> None:
    with pytest.raises(ModelError, match=fix) as caught:
        device.compute(OnnxModel(with_operator(domain)), {"x": X})
    assert "'Frob'" in caught.value.reason
    assert repr(domain) in caught.value.reason or not domain


def test_a_domain_that_is_not_imported(device: Device) -> None:
    with pytest.raises(ModelError, match=r"'acme.ops', whose version it does not import"):
        device.compute(OnnxModel(with_operator("acme.ops", 0)), {"x": X})


def test_libraries_of_operators_are_loaded_or_refused(device: Device, tmp_path: Path) -> None:
    text = tmp_path / "text.so"
    text.write_text("no library")
    for library, why in {
        tmp_path / "none.so": "there is no such file",
        text: "it cannot be loaded",
        Path(ort.capi.onnxruntime_pybind11_state.__file__): "it registers none",
    }.items():
        model = OnnxModel(tiny_model(), custom_op_libraries=[library])
        with pytest.raises(ModelError, match=why):
            device.compute(model, {"x": X})
    with pytest.raises(TypeError, match="give a list"):
        OnnxModel(tiny_model(), custom_op_libraries="lib.so")


# --- attributes of the session --------------------------------------------------------------------


@pytest.mark.parametrize(
    "level",
    ["basic", "ORT_ENABLE_BASIC", 1, "1", ort.GraphOptimizationLevel.ORT_ENABLE_BASIC],
    ids=repr,
)
def test_the_graph_is_optimised_as_far_as_asked(device: Device, level: Any) -> None:
    model = OnnxModel(tiny_model(), session_options={"graph_optimization_level": level})
    used = model.session(device).session.get_session_options()
    assert used.graph_optimization_level == ort.GraphOptimizationLevel.ORT_ENABLE_BASIC
    plain = OnnxModel(tiny_model()).session(device)
    assert plain is not model.session(device)


def test_messages_are_printed_where_they_are_asked_for(
    device: Device, capfd: pytest.CaptureFixture[str]
) -> None:
    device.compute(OnnxModel(tiny_model()), {"x": X})
    assert capfd.readouterr().err == ""
    device.compute(OnnxModel(tiny_model(), session_options={"log_severity_level": 0}), {"x": X})
    assert "[V:onnxruntime" in capfd.readouterr().err


@pytest.mark.parametrize(
    "options",
    [
        {"graph_optimization_level": "fast"},
        {"graph_optimization_level": 7},
        {"log_severity_level": 5},
        {"log_severity_level": "loud"},
        {"log_severity_level": -1},
        {"enable_mem_pattern": "perhaps"},
        {"inter_op_num_threads": "-1"},
        {"intra_op_num_threads": "many"},
    ],
)
def test_a_value_that_is_none_is_refused_at_once(options: dict[str, Any]) -> None:
    (name,) = options
    with pytest.raises(ValueError, match=f"{name} is .*; it can be "):
        OnnxModel(tiny_model(), session_options=options)


def test_a_programs_own_session_takes_the_same_options() -> None:
    wanted = {
        "intra_op_num_threads": 1,
        "log_severity_level": "info",
        "session.disable_prepacking": True,
    }
    options = session_options("cpu", session_options=wanted)
    assert options.log_severity_level == 1
    assert options.intra_op_num_threads == 1
    assert options.get_session_config_entry("session.disable_prepacking") == "1"
    with pytest.raises(ModelError, match=r"ignores the option 'session.nothing'"):
        session_options("cpu", session_options={"session.nothing": 1})
