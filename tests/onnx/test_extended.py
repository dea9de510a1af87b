"""Arrays of ml_dtypes, and texts: what ONNX Runtime's binding does not take as numpy has it."""

import sys
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper

from devicecore.device import Device
from devicecore.errors import ModelError
from devicecore.onnx import OnnxModel
from devicecore.onnx.arrays import ELEMENT_TYPES
from devicecore.onnx.extended_dtypes import packed, unpacked
from devicecore.ort import CPU_PROVIDER, SessionSpec

ort = pytest.importorskip("onnxruntime")
ml_dtypes = pytest.importorskip("ml_dtypes")
ELEMENTS = {each.name: each for each in ELEMENT_TYPES.values() if not each.in_numpy}
SMALL = {name: each for name, each in ELEMENTS.items() if each.per_byte > 1}
VALUES = {"uint": [0, 1, 2, 3, 1], "int": [0, 1, -2, -1, 1]}


@pytest.fixture
def device() -> Device:
    return Device("/device:CPU:0", session=SessionSpec(CPU_PROVIDER), frameworks=("onnx",))


def values_of(name: str, count: int = 5) -> Any:
    """Return *count* values of an element type that all of its kind have."""
    few = VALUES.get(name.rstrip("0123456789"), [1, 2, 0.5, 4, 1])
    return np.resize(few, count).astype(getattr(ml_dtypes, name))


def cast(given: int, made: int, size: Any = "n") -> OnnxModel:
    """Return a model that makes elements of one type of those of another."""
    graph = helper.make_graph(
        [helper.make_node("Cast", ["x"], ["y"], to=made)],
        "g",
        [helper.make_tensor_value_info("x", given, [size])],
        [helper.make_tensor_value_info("y", made, [size])],
    )
    return saved(graph)


def saved(graph: Any) -> OnnxModel:
    opset = [helper.make_opsetid("", 25)]  # the first one with all of these
    model = helper.make_model(graph, opset_imports=opset, ir_version=11)
    return OnnxModel(model.SerializeToString(), threads=1)


@pytest.mark.parametrize("size", [5, "n"])
@pytest.mark.parametrize("name", ELEMENTS)
def test_it_goes_in_as_an_array(name: str, size: Any, device: Device) -> None:
    model = cast(ELEMENTS[name].number, TensorProto.FLOAT, size)
    x = values_of(name)
    for order in (1, -1, 1):  # one of them is not contiguous
        y = device.compute(model, {"x": x[::order]})["y"]
        np.testing.assert_array_equal(y, x[::order].astype(np.float32))
    # Those that share a byte are put there at each call.
    assert model.copies == (3 if name in SMALL else 1)


@pytest.mark.parametrize("size", [5, "n"])
@pytest.mark.parametrize("name", ELEMENTS)
def test_it_comes_out_as_an_array(name: str, size: Any, device: Device) -> None:
    model = cast(TensorProto.FLOAT, ELEMENTS[name].number, size)
    expected = values_of(name)
    results = []
    for order in (1, -1, 1):
        x = expected[::order].astype(np.float32)
        results.append(device.compute(model, {"x": x})["y"])
        assert results[-1].dtype == expected.dtype
    for order, y in zip((1, -1, 1), results, strict=True):  # a later call changed none
        np.testing.assert_array_equal(y, expected[::order])


@pytest.mark.parametrize("shape", [(0,), (1,), (4,), (2, 3), ()])
@pytest.mark.parametrize("name", ["bfloat16", "int4", "uint2"])
def test_any_shape_goes_through(name: str, shape: tuple[int, ...], device: Device) -> None:
    element = ELEMENTS[name].number
    graph = helper.make_graph(
        [
            helper.make_node("Cast", ["x"], ["t"], to=TensorProto.FLOAT),
            helper.make_node("Cast", ["t"], ["y"], to=element),
        ],
        "g",
        [helper.make_tensor_value_info("x", element, [None] * len(shape))],
        [helper.make_tensor_value_info("y", element, [None] * len(shape))],
    )
    x = values_of(name, int(np.prod(shape))).reshape(shape)
    y = device.compute(saved(graph), {"x": x})["y"]
    assert (y.dtype, y.shape) == (x.dtype, shape)
    np.testing.assert_array_equal(y, x)


@pytest.mark.parametrize("name", SMALL)
def test_bytes_are_shared_as_onnx_has_it(name: str) -> None:
    x = values_of(name)
    tensor = numpy_helper.from_array(x)
    assert packed(x, SMALL[name]).tobytes() == tensor.raw_data


@given(st.sampled_from(sorted(SMALL)), st.binary(max_size=20), st.integers(0, 3))
def test_what_shares_bytes_comes_back(name: str, data: bytes, missing: int) -> None:
    element = SMALL[name]
    count = max(0, len(data) * element.per_byte - missing % element.per_byte)
    dtype = getattr(ml_dtypes, name)
    x = unpacked(np.frombuffer(data, np.uint8), count, element, dtype)
    again = unpacked(packed(x, element), count, element, dtype)
    assert x.shape == (count,)
    np.testing.assert_array_equal(again, x)


@pytest.mark.parametrize("element", [TensorProto.BFLOAT16, TensorProto.INT4])
def test_without_ml_dtypes_it_stays_a_value(
    element: int, device: Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "ml_dtypes", None)
    y = device.compute(cast(TensorProto.FLOAT, element), {"x": np.ones(3, np.float32)})["y"]
    assert type(y) is ort.OrtValue
    assert y.shape() == [3]


def test_what_an_older_ml_dtypes_lacks_stays_a_value(
    device: Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(ml_dtypes, "int2")
    y = device.compute(cast(TensorProto.FLOAT, 26), {"x": np.ones(3, np.float32)})["y"]
    assert type(y) is ort.OrtValue


def test_another_type_is_refused(device: Device) -> None:
    model = cast(TensorProto.INT4, TensorProto.FLOAT)
    with pytest.raises(ModelError, match=r"it takes 'x': int4 \[n\], given uint4 \[5\]"):
        device.compute(model, {"x": values_of("uint4")})
    with pytest.raises(ModelError, match=r"it takes 'x': int4 \[n\], given int8 \[3\]"):
        device.compute(model, {"x": np.ones(3, np.int8)})


def test_torch_has_no_elements_that_share_a_byte(device: Device) -> None:
    torch = pytest.importorskip("torch")
    if not hasattr(torch, "int4"):
        pytest.skip("this torch has no name for them")
    model = cast(TensorProto.INT4, TensorProto.FLOAT)
    with pytest.raises(ModelError, match=r"it takes 'x': int4 .* given a Tensor"):
        device.compute(model, {"x": torch.empty(3, dtype=torch.int4)})
    made = cast(TensorProto.FLOAT, TensorProto.INT4)
    assert type(device.compute(made, {"x": torch.ones(3)})["y"]) is ort.OrtValue


def test_texts_go_in_where_numbers_come_out(device: Device) -> None:
    graph = helper.make_graph(
        [helper.make_node("Equal", ["x", "z"], ["y"])],
        "g",
        [helper.make_tensor_value_info(name, TensorProto.STRING, ["n"]) for name in "xz"],
        [helper.make_tensor_value_info("y", TensorProto.BOOL, ["n"])],
    )
    model = saved(graph)
    for texts in (np.array(["a", "b"]), np.array(["a", "b"], object)):
        y = device.compute(model, {"x": texts, "z": np.array(["a", "c"], object)})["y"]
        assert y.tolist() == [True, False]
