"""Models that cannot be bound: an input with a default, texts beside numbers."""

from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

from devicecore.device import Device
from devicecore.onnx import OnnxModel
from devicecore.ort import CPU_PROVIDER, SessionSpec

torch = pytest.importorskip("torch")
pytest.importorskip("onnxruntime")


@pytest.fixture
def device() -> Device:
    return Device("/device:CPU:0", session=SessionSpec(CPU_PROVIDER), frameworks=("onnx",))


def model_of(nodes: list[Any], ports: dict[str, tuple[int, list[Any]]], outputs: str) -> OnnxModel:
    infos = {name: helper.make_tensor_value_info(name, *kind) for name, kind in ports.items()}
    given = [info for name, info in infos.items() if name not in outputs]
    default = [numpy_helper.from_array(np.full(1, 10, np.float32), "d")] if "d" in ports else []
    graph = helper.make_graph(nodes, "g", given, [infos[name] for name in outputs], default)
    opset = [helper.make_opsetid("", 17)]
    made = helper.make_model(graph, opset_imports=opset, ir_version=9)
    return OnnxModel(made.SerializeToString())


def test_tensors_of_torch_come_out_where_a_default_is_given(device: Device) -> None:
    kind = (TensorProto.FLOAT, ["n"])
    add = helper.make_node("Add", ["x", "d"], ["y"])
    model = model_of([add], {"x": kind, "d": (TensorProto.FLOAT, [1]), "y": kind}, "y")
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    given = device.compute(model, {"x": x, "d": torch.tensor([5.0])})["y"]
    assert torch.equal(given, torch.tensor([6.0, 7.0]))
    left = device.compute(model, {"x": x})["y"]
    assert torch.equal(left, torch.tensor([11.0, 12.0]))


def test_texts_stay_what_they_are_beside_tensors(device: Device) -> None:
    number, text = (TensorProto.FLOAT, ["n"]), (TensorProto.STRING, ["m"])
    nodes = [helper.make_node("Neg", ["x"], ["y"]), helper.make_node("Identity", ["t"], ["u"])]
    model = model_of(nodes, {"x": number, "t": text, "y": number, "u": text}, "yu")
    found = device.compute(model, {"x": torch.tensor([1.0]), "t": np.array(["a", "b"])})
    assert torch.equal(found["y"], torch.tensor([-1.0]))
    assert found["u"].tolist() == ["a", "b"]
