"""Texts for models: each array of them arrives as it is, or one error says what it holds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper

from devicecore.device import Device
from devicecore.errors import ModelError
from devicecore.onnx import OnnxModel, strings
from devicecore.ort import CPU_PROVIDER, SessionSpec

ort = pytest.importorskip("onnxruntime")
STRING = TensorProto.STRING


@pytest.fixture
def device() -> Device:
    return Device("/device:CPU:0", session=SessionSpec(CPU_PROVIDER), frameworks=("onnx",))


def identity(shape: Any = None, kind: int = STRING) -> OnnxModel:
    """Return a model that gives back what it takes, of any rank unless *shape* says one."""
    values = [helper.make_tensor_value_info(name, kind, shape) for name in "xy"]
    node = helper.make_node("Identity", ["x"], ["y"])
    graph = helper.make_graph([node], "g", values[:1], values[1:])
    opset = [helper.make_opsetid("", 17)]
    return OnnxModel(
        helper.make_model(graph, opset_imports=opset, ir_version=8).SerializeToString()
    )


def at(kind: int) -> OnnxModel:
    """Return a model that takes a sequence, and gives the tensor at a place in it."""
    graph = helper.make_graph(
        [helper.make_node("SequenceAt", ["s", "i"], ["y"])],
        "g",
        [
            helper.make_tensor_sequence_value_info("s", kind, None),
            helper.make_tensor_value_info("i", TensorProto.INT64, []),
        ],
        [helper.make_tensor_value_info("y", kind, None)],
    )
    opset = [helper.make_opsetid("", 17)]
    return OnnxModel(
        helper.make_model(graph, opset_imports=opset, ir_version=8).SerializeToString()
    )


WIDE = np.array([[b"a", b"bc", b"def"], [b"", b"\xc3\xa9", b"x y"]])


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (np.array([b"a", b"bc"]), ["a", "bc"]),
        (
            np.array([b"a"] * 200 + [b"longer than the others"]),
            ["a"] * 200 + ["longer than the others"],
        ),
        (np.array(["a", "bc"]), ["a", "bc"]),
        (np.array(["a", "bc"], ">U2"), ["a", "bc"]),
        (np.array(["a", b"bc", np.str_("d")], object), ["a", "bc", "d"]),
        (np.array([["a", "bc"], ["d", "e"]], object).T, [["a", "d"], ["bc", "e"]]),
        (np.array([[b"a", b"\xc3\xa9"], [b"d", b"e"]], object).T, [["a", "d"], ["é", "e"]]),
        (np.array([["a", "bc"], ["d", "e"]])[::-1, 1:], [["e"], ["bc"]]),
        (WIDE, [["a", "bc", "def"], ["", "é", "x y"]]),
        (WIDE[:, ::2], [["a", "def"], ["", "x y"]]),
        (WIDE.T, [["a", ""], ["bc", "é"], ["def", "x y"]]),
        (WIDE[::-1, 1:], [["é", "x y"], ["bc", "def"]]),
        (np.asfortranarray(WIDE), [["a", "bc", "def"], ["", "é", "x y"]]),
        (np.array(b"one"), "one"),
        (np.array("one"), "one"),
        (np.array([], "S4"), []),
        (np.zeros((0, 3), "S4"), np.zeros((0, 3)).tolist()),
        (np.array(["a\0b", "é", "日本"], object), ["a\0b", "é", "日本"]),
        (["a", "bc"], ["a", "bc"]),
        ([["a"], ["bc"]], [["a"], ["bc"]]),
        (np.bytes_(b"one"), "one"),
    ],
)
def test_texts_arrive_as_they_are(device: Device, given: Any, expected: Any) -> None:
    result = device.compute(identity(), {"x": given})["y"]
    assert result.tolist() == expected
    assert result.shape == np.shape(given)


@pytest.mark.skipif(not hasattr(np.dtypes, "StringDType"), reason="numpy 2 has these texts")
def test_texts_of_any_length(device: Device) -> None:
    given = np.array(["a", "b" * 99], dtype=np.dtypes.StringDType())
    assert device.compute(identity(), {"x": given})["y"].tolist() == ["a", "b" * 99]


@pytest.mark.parametrize(
    ("given", "why"),
    [
        (np.array(["a", None], object), r"None at \[1\]"),
        (np.array([["a", 2.5]], object), r"a float at \[0, 1\]"),
        (np.array([1, 2], object), r"a int at \[0\]"),
        (
            np.array([["a", "b"], ["c", "\ud83d"], ["\ude00", "d"]], object),
            r"surrogate\) at \[1, 1\]",
        ),
        (np.array([[b"a", b"\xc3"], [b"\xa9", b"d"]], object), r"no UTF-8 at \[0, 1\]"),
        (np.array([["a", "b"], [3, "d"]], object).T[::-1], r"a int at \[1, 1\]"),
        (np.array([["a"], ["b", "c"]], object), r"a list at \[0\]"),
        ([["a"], "b"], "inhomogeneous|a list at"),
        (np.array([b"a", b"\xff\xfe"]), r"bytes that are no UTF-8 at \[1\]"),
        (np.array(["\ud800"], object), r"surrogate\) at \[0\]"),
        (np.array(["2020-01-01"], "M8[D]"), r"datetime64\[D\] \[1\]"),
        (np.array([3], "m8[s]"), r"timedelta64\[s\] \[1\]"),
        (np.zeros(2, "V3"), r"\|V3 \[2\]"),
        (np.zeros(2, [("a", "S1"), ("b", "i4")]), r"\[\('a'"),
        (np.zeros(2), r"float64 \[2\]"),
        (np.array([True]), r"bool \[1\]"),
        (None, "a NoneType"),
        (3, "a int"),
        ({"a": "b"}, "a dict"),
    ],
)
def test_what_is_no_text_is_one_error(device: Device, given: Any, why: str) -> None:
    with pytest.raises(ModelError, match=why) as caught:
        device.compute(identity(), {"x": given})
    assert "it takes 'x': string" in caught.value.reason


def test_texts_have_the_declared_shape(device: Device) -> None:
    model = identity(["n", 2])
    assert device.compute(model, {"x": WIDE[:, :2]})["y"].shape == (2, 2)
    for given in (WIDE, WIDE[0], np.array("one")):
        with pytest.raises(ModelError, match=r"it takes 'x': string \[n, 2\], given texts \["):
            device.compute(model, {"x": given})


def test_sequences_of_texts_and_values_of_onnxruntime(device: Device) -> None:
    place = np.array(1)
    given = [np.array(["x"]), np.array([b"a", b"bc"])]
    assert device.compute(at(STRING), {"s": given, "i": place})["y"].tolist() == ["a", "bc"]
    with pytest.raises(ModelError, match=r"None at \[0\]"):
        device.compute(at(STRING), {"s": [np.array([None], object)], "i": place})
    numbers = ort.OrtValue.ortvalue_from_numpy(np.zeros(2, "f4"))  # of texts it makes none
    with pytest.raises(ModelError):
        device.compute(identity(), {"x": numbers})


@pytest.mark.parametrize(
    "given",
    [np.array([b"a"]), np.array(["2020"], "M8[D]"), np.zeros(1, "V4"), np.zeros(1, [("a", "f4")])],
)
def test_numbers_are_not_taken_from_other_arrays(device: Device, given: Any) -> None:
    with pytest.raises(ModelError, match="it takes 'x': float32"):
        device.compute(identity(["n"], TensorProto.FLOAT), {"x": given})


def test_texts_are_not_looked_at_one_by_one(
    device: Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(strings, "_text", None)  # what looks at one
    for given in (np.array([["a", "bc"]]), np.array(["a"], object), WIDE, WIDE.astype(object)):
        assert device.compute(identity(), {"x": given})["y"].shape == given.shape
