"""Results that stay what they are, whatever is kept between calls."""

from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper

from devicecore.device import Device
from devicecore.onnx import OnnxModel
from devicecore.ort import CPU_PROVIDER, SessionSpec

torch = pytest.importorskip("torch")
pytest.importorskip("onnxruntime")


@pytest.fixture
def device() -> Device:
    return Device("/device:CPU:0", session=SessionSpec(CPU_PROVIDER), frameworks=("onnx",))


def model_of(nodes: list[Any], ports: dict[str, Any], outputs: str) -> OnnxModel:
    infos = {name: helper.make_tensor_value_info(name, *kind) for name, kind in ports.items()}
    given = [info for name, info in infos.items() if name == "x"]
    graph = helper.make_graph(nodes, "g", given, [infos[name] for name in outputs])
    opset = [helper.make_opsetid("", 17)]
    made = helper.make_model(graph, opset_imports=opset, ir_version=9)
    return OnnxModel(made.SerializeToString())


@pytest.mark.parametrize("size", [4, 100_000, "n"])
@pytest.mark.parametrize("kind", ["numpy", "torch"])
def test_an_input_that_is_an_output_is_copied(size: int | str, kind: str, device: Device) -> None:
    port = (TensorProto.FLOAT, [size])
    model = model_of([helper.make_node("Relu", ["x"], ["z"])], {"x": port, "z": port}, "zx")
    count = size if isinstance(size, int) else 100_000
    make: Any = np.full if kind == "numpy" else torch.full
    results = []
    given = []
    for value in (1.0, 2.0, 3.0, 4.0):
        x = make((count,), value)
        x = x.astype(np.float32) if kind == "numpy" else x
        results.append(device.compute(model, {"x": x})["x"])
        given.append(x)
    for value, result, x in zip((1.0, 2.0, 3.0, 4.0), results, given, strict=True):
        assert (result == value).all()
        result[:] = -1
        assert (x == value).all()


def test_a_model_may_give_another_shape_than_it_declares(
    device: Device, capfd: pytest.CaptureFixture[str]
) -> None:
    ports = {"x": (TensorProto.FLOAT, [4]), "y": (TensorProto.INT64, [1, 2])}
    model = model_of([helper.make_node("NonZero", ["x"], ["y"])], ports, "y")
    for ones in (2, 2, 2, 3, 3, 1, 2, 3):
        x = np.zeros(4, np.float32)
        x[:ones] = 1
        assert device.compute(model, {"x": x})["y"].tolist() == [list(range(ones))]
    assert capfd.readouterr() == ("", "")  # ONNX Runtime has a warning for it


def test_a_model_that_is_closed_opens_again(device: Device) -> None:
    port = (TensorProto.FLOAT, ["n"])
    model = model_of([helper.make_node("Neg", ["x"], ["y"])], {"x": port, "y": port}, "y")
    x = np.ones(3, np.float32)
    model.close()
    for _ in range(3):
        assert device.compute(model, {"x": x})["y"].tolist() == [-1, -1, -1]
    assert device.resource_mgr.containers() == {"onnx": 1}
    model.close()
    assert device.resource_mgr.containers() == {"onnx": 0}
    assert device.compute(model, {"x": x})["y"].tolist() == [-1, -1, -1]
