"""ONNX models on a real CUDA GPU: torch's tensors go in and come out without leaving it."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from devicecore.device import Device
from devicecore.device_factory import DeviceOptions, default_registry
from devicecore.errors import ModelError
from devicecore.onnx import OnnxModel, session_options
from devicecore.ort.tiny_model import expected_values, tiny_model

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.hardware

X = np.array([[1, -2, 3, 0], [-1, 2, 0, 4]], np.float32)
EXPECTED = np.array(expected_values(), np.float32).reshape(2, 4)
LONG = 500_000_000  # cycles of the GPU's clock: about a quarter of a second


def _need(framework: str) -> None:
    registry = default_registry()
    found = registry.liveness_of(registry.factories("CUDA")[0], framework)
    if not found.is_live:
        pytest.skip(f"CUDA for {framework} is {found.state}: {found.reason}")


@pytest.fixture
def device() -> Iterator[Device]:
    """The first GPU, live for ONNX Runtime's CUDA provider."""
    _need("onnx")
    made = default_registry().new_device("CUDA", DeviceOptions(frameworks=("onnx",)), "")
    assert isinstance(made, Device)
    yield made
    made.close()


@pytest.fixture
def torch() -> Any:
    _need("torch")
    return pytest.importorskip("torch")


def test_arrays_of_the_host_go_in_and_come_out(device: Device) -> None:
    model = OnnxModel(tiny_model())
    for factor in (1, 2, 3):
        y = device.compute(model, {"x": X * factor})["y"]
        np.testing.assert_allclose(y, EXPECTED * factor)


def test_tensors_stay_on_the_gpu(device: Device, torch: Any) -> None:
    model = OnnxModel(tiny_model())
    x = torch.from_numpy(X).cuda()
    results = [device.compute(model, {"x": x * factor})["y"] for factor in (1, 2, 3, 4)]
    for factor, y in enumerate(results, 1):
        assert y.device == x.device
        np.testing.assert_allclose(y.cpu().numpy(), EXPECTED * factor)
    assert model.copies == 0


def test_a_run_waits_for_the_stream_that_makes_its_input(device: Device, torch: Any) -> None:
    model = OnnxModel(tiny_model())
    source = torch.from_numpy(X).cuda()
    x = torch.zeros_like(source)
    for stream in (torch.cuda.current_stream(), torch.cuda.Stream(), torch.cuda.Stream()):
        x.zero_()
        torch.cuda.synchronize()
        with torch.cuda.stream(stream):
            torch.cuda._sleep(LONG)
            x.copy_(source)
            y = device.compute(model, {"x": x})["y"] + 0
        stream.synchronize()
        np.testing.assert_allclose(y.cpu().numpy(), EXPECTED)


def test_what_torch_does_next_sees_the_result(device: Device, torch: Any) -> None:
    model = OnnxModel(tiny_model())
    x = torch.from_numpy(X).cuda()
    for _ in range(200):
        total = device.compute(model, {"x": x})["y"].sum()
        assert float(total) == pytest.approx(EXPECTED.sum())


def test_many_threads_and_streams_share_a_session(device: Device, torch: Any) -> None:
    model = OnnxModel(tiny_model())
    source = torch.from_numpy(X).cuda()
    device.compute(model, {"x": source})

    def run(seed: int) -> float:
        stream = torch.cuda.Stream()
        with torch.cuda.stream(stream):
            stream.wait_stream(torch.cuda.default_stream())
            worst = torch.zeros((), device="cuda")
            for factor in range(seed, seed + 100):
                y = device.compute(model, {"x": source * factor})["y"]
                expected = torch.from_numpy(EXPECTED * factor).cuda()
                worst = torch.maximum(worst, ((y - expected).abs() / (1 + expected.abs())).max())
            return float(worst)

    with ThreadPoolExecutor(8) as pool:
        assert max(pool.map(run, range(1, 33))) < 1e-5


def test_a_long_chain_is_queued_and_right(device: Device, torch: Any) -> None:
    """Each call reads what the one before has yet to compute; old tensors are freed at once."""
    onnx = pytest.importorskip("onnx")
    ports = [onnx.helper.make_tensor_value_info(name, 1, ["n", "m"]) for name in ("x", "y")]
    one = onnx.numpy_helper.from_array(np.ones(1, np.float32), "one")
    node = onnx.helper.make_node("Add", ["x", "one"], ["y"])
    graph = onnx.helper.make_graph([node], "add", ports[:1], ports[1:], [one])
    opset = [onnx.helper.make_opsetid("", 17)]
    made = onnx.helper.make_model(graph, opset_imports=opset, ir_version=9)
    model = OnnxModel(made.SerializeToString())
    x = torch.zeros((512, 2048), device="cuda")
    for _ in range(500):
        x = device.compute(model, {"x": x})["y"]
        assert torch.is_tensor(x * 2)  # memory that is freed at once, and taken by the next call
    assert (x == 500).all()


def test_a_tensor_and_a_value_go_in_together(device: Device, torch: Any) -> None:
    ort, onnx = pytest.importorskip("onnxruntime"), pytest.importorskip("onnx")
    ports = [onnx.helper.make_tensor_value_info(name, 1, [2, 4]) for name in ("x", "v", "y")]
    node = onnx.helper.make_node("Add", ["x", "v"], ["y"])
    graph = onnx.helper.make_graph([node], "add", ports[:2], ports[2:])
    opset = [onnx.helper.make_opsetid("", 17)]
    made = onnx.helper.make_model(graph, opset_imports=opset, ir_version=9)
    model = OnnxModel(made.SerializeToString())
    x = torch.from_numpy(X).cuda()
    for factor in (1, 2, 3, 4):
        value = ort.OrtValue.ortvalue_from_numpy(X * factor)
        y = device.compute(model, {"x": x, "v": value})["y"]
        np.testing.assert_allclose(y.cpu().numpy(), X * (1 + factor))


def test_tensors_of_the_host_give_tensors_of_the_host(device: Device, torch: Any) -> None:
    y = device.compute(OnnxModel(tiny_model()), {"x": torch.from_numpy(X)})["y"]
    assert y.device.type == "cpu"
    np.testing.assert_allclose(y.numpy(), EXPECTED)


def test_a_tensor_on_another_gpu_is_refused(device: Device, torch: Any) -> None:
    if torch.cuda.device_count() < 2:
        pytest.skip("there is one GPU only")
    with pytest.raises(ModelError, match="on cpu or cuda:0, given a tensor on cuda:1"):
        device.compute(OnnxModel(tiny_model()), {"x": torch.from_numpy(X).to("cuda:1")})


def test_ones_own_session_runs_on_the_gpu(device: Device) -> None:
    ort = pytest.importorskip("onnxruntime")
    session = ort.InferenceSession(tiny_model(), session_options(device), enable_fallback=0)
    assert session.get_providers()[0] == "CUDAExecutionProvider"
    np.testing.assert_allclose(session.run(None, {"x": X})[0], EXPECTED)
