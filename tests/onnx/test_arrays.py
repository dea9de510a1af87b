"""What goes into a model and what comes out: whose arrays, where they lie, and what is copied."""

import gc
import threading
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper

from devicecore import config
from devicecore.device import Device
from devicecore.errors import ModelError, NotLiveError
from devicecore.onnx import OnnxModel
from devicecore.ort import CPU_PROVIDER, SessionSpec, empty_value
from devicecore.ort.tiny_model import expected_values, tiny_model

ort = pytest.importorskip("onnxruntime")
torch = pytest.importorskip("torch")
SIZES = [3, 40_000]  # written into a buffer, and bound where it lies


@pytest.fixture
def device() -> Device:
    return Device("/device:CPU:0", session=SessionSpec(CPU_PROVIDER), frameworks=("onnx",))


def built(nodes: list[Any], inputs: dict[str, Any], outputs: dict[str, Any]) -> OnnxModel:
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info(name, *kind) for name, kind in inputs.items()],
        [helper.make_tensor_value_info(name, *kind) for name, kind in outputs.items()],
    )
    opset = [helper.make_opsetid("", 13)]
    return OnnxModel(
        helper.make_model(graph, opset_imports=opset, ir_version=8).SerializeToString()
    )


def negated(shape: list[Any], element: int = TensorProto.FLOAT) -> OnnxModel:
    return built(
        [helper.make_node("Neg", ["x"], ["y"])], {"x": (element, shape)}, {"y": (element, shape)}
    )


def as_array(result: Any) -> np.ndarray[Any, Any]:
    found: np.ndarray[Any, Any] = np.asarray(
        result if type(result) is np.ndarray else result.numpy()
    )
    return found


def summed() -> OnnxModel:
    kind = (TensorProto.FLOAT, ["n"])
    return built([helper.make_node("Add", ["a", "b"], ["y"])], {"a": kind, "b": kind}, {"y": kind})


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("fixed", [True, False])
@pytest.mark.parametrize("kind", ["numpy", "torch", "ort"])
def test_what_comes_out_is_of_the_kind_of_what_goes_in(
    kind: str, fixed: bool, size: int, device: Device
) -> None:
    model = negated([size if fixed else "n"])
    x = np.arange(size, dtype=np.float32)
    make: Any = {
        "numpy": np.copy,
        "torch": torch.from_numpy,
        "ort": ort.OrtValue.ortvalue_from_numpy,
    }
    for factor in (1, 2, 3):  # the first call learns, the second binds anew, the third uses that
        y = device.compute(model, {"x": make[kind](x * factor)})["y"]
        assert type(y) is {"numpy": np.ndarray, "torch": torch.Tensor, "ort": ort.OrtValue}[kind]
        np.testing.assert_array_equal(as_array(y), -x * factor)
    assert model.copies == 0


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("fixed", [True, False])
@pytest.mark.parametrize("kind", ["numpy", "torch", "ort"])
def test_a_later_call_changes_no_earlier_result(
    kind: str, fixed: bool, size: int, device: Device
) -> None:
    model = negated([size if fixed else "n"])
    make: Any = {
        "numpy": np.copy,
        "torch": torch.from_numpy,
        "ort": ort.OrtValue.ortvalue_from_numpy,
    }
    inputs = [np.full(size, number, np.float32) for number in range(6)]
    results = [device.compute(model, {"x": make[kind](x)})["y"] for x in inputs]
    for x, y in zip(inputs, results, strict=True):
        np.testing.assert_array_equal(as_array(y), -x)


@pytest.mark.parametrize("fixed", [True, False])
@pytest.mark.parametrize("kind", ["numpy", "torch", "ort"])
def test_a_result_outlives_its_session(kind: str, fixed: bool, device: Device) -> None:
    model = negated([40_000 if fixed else "n"])
    make: Any = {
        "numpy": np.copy,
        "torch": torch.from_numpy,
        "ort": ort.OrtValue.ortvalue_from_numpy,
    }
    x = np.arange(40_000, dtype=np.float32)
    y = [device.compute(model, {"x": make[kind](x)})["y"] for _ in range(3)][-1]
    device.close()
    del model
    gc.collect()
    np.testing.assert_array_equal(as_array(y), -x)


@pytest.mark.parametrize("size", SIZES)
def test_an_array_changed_after_the_call_changes_no_result(size: int, device: Device) -> None:
    model = negated([size])
    x = np.ones(size, np.float32)
    for _ in range(3):
        x[:] = 1
        y = device.compute(model, {"x": x})["y"]
        x[:] = 7
        assert y.max() == -1


def misaligned(x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    raw: np.ndarray[Any, Any] = np.empty(x.nbytes + 1, np.uint8)[1:].view(x.dtype)
    raw[:] = x
    return raw


@pytest.mark.parametrize("size", SIZES)
def test_numpy_arrays_of_every_layout_go_in(size: int, device: Device) -> None:
    model = negated([size])
    x = np.arange(size, dtype=np.float32)
    layouts = [x[::-1], np.repeat(x, 2)[::2], misaligned(x), np.broadcast_to(x[1], size)]
    readonly = x.copy()
    readonly.setflags(write=False)
    expected = [x[::-1], x, x, np.full(size, x[1]), x, x]
    for given, right in zip([*layouts, readonly, x.view(np.memmap)], expected, strict=True):
        for _ in range(3):
            y = device.compute(model, {"x": given})["y"]
            np.testing.assert_array_equal(y, -right)
            assert type(y) is np.ndarray
    # Small ones are written into a buffer in any case; of the large ones, four cannot be read.
    assert model.copies == (12 if size > 1000 else 0)


@pytest.mark.parametrize("size", SIZES)
def test_torch_tensors_of_every_layout_go_in(size: int, device: Device) -> None:
    model = negated([size])
    x = torch.arange(size, dtype=torch.float32)
    raw = bytearray(b"\0" + x.numpy().tobytes())
    unaligned = torch.frombuffer(raw, dtype=torch.float32, offset=1)
    imaginary = torch.conj(torch.complex(x, x)).imag  # negative by a mark only
    layouts = [x.repeat_interleave(2)[::2], unaligned, imaginary]
    parameter = torch.nn.Parameter(x)
    expected = [x, x, -x, x]
    for given, right in zip([*layouts, parameter], expected, strict=True):
        for _ in range(3):
            y = device.compute(model, {"x": given})["y"]
            assert torch.equal(y, -right)
            assert not y.requires_grad
    assert model.copies == (9 if size > 1000 else 0)


def test_torchs_modes_do_not_stick(device: Device) -> None:
    model = negated([3])
    x = torch.ones(3)
    with torch.inference_mode():
        for _ in range(3):
            device.compute(model, {"x": x})
    assert torch.equal(device.compute(model, {"x": x})["y"], -x)
    with torch.inference_mode():
        inference = torch.ones(3)
    assert torch.equal(device.compute(model, {"x": inference})["y"], -x)


@pytest.mark.parametrize("fixed", [True, False])
def test_bfloat16_goes_in_and_out_as_tensors(fixed: bool, device: Device) -> None:
    element = TensorProto.BFLOAT16
    kind = (element, [4 if fixed else "n"])
    nodes = [helper.make_node("Identity", ["x"], ["y"])]
    model = built(nodes, {"x": kind}, {"y": kind})
    x = torch.tensor([1, 2, 3, 4], dtype=torch.bfloat16)
    for _ in range(3):
        y = device.compute(model, {"x": x})["y"]
        assert y.dtype == torch.bfloat16
        assert torch.equal(y, x)
    with pytest.raises(ModelError, match=r"it takes 'x': bfloat16 .*, given float32 \[4\]"):
        device.compute(model, {"x": x.float()})


def test_truth_values_come_out_as_such(device: Device) -> None:
    kind = (TensorProto.BOOL, ["n"])
    model = built([helper.make_node("Not", ["x"], ["y"])], {"x": kind}, {"y": kind})
    x = torch.tensor([True, False, True])
    for _ in range(3):
        y = device.compute(model, {"x": x})["y"]
        assert y.dtype == torch.bool
        assert torch.equal(y, ~x)


@pytest.mark.parametrize("shape", [(0,), (2, 0, 3), ()])
@pytest.mark.parametrize("kind", ["numpy", "torch"])
def test_empty_arrays_and_scalars_go_through(
    kind: str, shape: tuple[int, ...], device: Device
) -> None:
    model = negated([f"n{axis}" for axis in range(len(shape))])
    x = np.ones(shape, np.float32)
    for _ in range(3):
        y = device.compute(model, {"x": x if kind == "numpy" else torch.from_numpy(x)})["y"]
        np.testing.assert_array_equal(as_array(y), -x)


def test_kinds_can_be_mixed(device: Device) -> None:
    model = summed()
    ones = np.ones(3, np.float32)
    tensor, value = torch.from_numpy(ones), ort.OrtValue.ortvalue_from_numpy(ones)
    pairs = [
        (ones, tensor, torch.Tensor),
        (ones, value, ort.OrtValue),
        (tensor, value, torch.Tensor),
    ]
    for a, b, kind in pairs:
        for _ in range(3):
            y = device.compute(model, {"a": a, "b": b})["y"]
            assert type(y) is kind
            np.testing.assert_array_equal(as_array(y), [2, 2, 2])


def test_the_order_of_the_feeds_does_not_matter(device: Device) -> None:
    kind = (TensorProto.FLOAT, [2])
    nodes = [helper.make_node("Sub", ["a", "b"], ["y"])]
    model = built(nodes, {"a": kind, "b": kind}, {"y": kind})
    a, b = np.full(2, 5, np.float32), np.full(2, 3, np.float32)
    for _ in range(3):
        assert device.compute(model, {"a": a, "b": b})["y"].tolist() == [2, 2]
        assert device.compute(model, {"b": b, "a": a})["y"].tolist() == [2, 2]


def test_a_model_without_inputs_runs(device: Device) -> None:
    value = helper.make_tensor("v", TensorProto.FLOAT, [2], [1.0, 2.0])
    nodes = [helper.make_node("Constant", [], ["y"], value=value)]
    model = built(nodes, {}, {"y": (TensorProto.FLOAT, [2])})
    for _ in range(3):
        result = device.compute(model, {})["y"]
        assert result.tolist() == [1, 2]
        result[:] = 0


def test_shapes_that_change_from_call_to_call_do_not_pile_up(device: Device) -> None:
    model = negated(["n"])
    for size in [*range(1, 100), *range(1, 100)]:
        x = np.arange(size, dtype=np.float32)
        np.testing.assert_array_equal(device.compute(model, {"x": x})["y"], -x)
    (calls,) = model._idle.values()
    assert len(calls) <= 32


def test_a_model_that_declares_a_wrong_shape_still_runs(device: Device) -> None:
    kind = (TensorProto.FLOAT, ["n"])
    shape = (TensorProto.INT64, [2])
    nodes = [helper.make_node("Reshape", ["x", "s"], ["y"])]
    model = built(nodes, {"x": kind, "s": shape}, {"y": (TensorProto.FLOAT, [1, 6])})
    x = np.arange(6, dtype=np.float32)
    for _ in range(3):
        y = device.compute(model, {"x": x, "s": np.array([3, 2])})["y"]
        assert y.shape == (3, 2)


@pytest.mark.parametrize(
    "given",
    [
        np.ones(3, ">f4"),
        torch.ones(3, device="meta"),
        torch.ones(3).to_sparse(),
        ort.OrtValue.ortvalue_from_numpy(np.ones(3)),
        np.float32(1),
    ],
    ids=["big-endian", "meta", "sparse", "value of another dtype", "scalar of numpy"],
)
def test_what_does_not_fit_is_refused_each_time(given: Any, device: Device) -> None:
    model = negated([3])
    for good in (np.ones(3, np.float32), torch.ones(3)):
        device.compute(model, {"x": good})
        for _ in range(3):
            with pytest.raises(ModelError, match=r"it takes 'x': float32 \[3\]"):
                device.compute(model, {"x": given})


def test_a_failed_run_leaves_nothing_behind(device: Device) -> None:
    kind, index = (TensorProto.FLOAT, [2]), (TensorProto.INT64, [1])
    nodes = [helper.make_node("Gather", ["x", "i"], ["y"])]
    model = built(nodes, {"x": kind, "i": index}, {"y": (TensorProto.FLOAT, [1])})
    x = np.array([5, 6], np.float32)
    for _ in range(3):
        assert device.compute(model, {"x": x, "i": np.array([1])})["y"].tolist() == [6]
        with pytest.raises(ModelError, match="check the values"):
            device.compute(model, {"x": x, "i": np.array([9])})


@pytest.mark.parametrize("size", SIZES)
def test_threads_do_not_share_a_binding(size: int, device: Device) -> None:
    model = negated([size])
    wrong: list[int] = []

    def work(number: int) -> None:
        x = np.full(size, number, np.float32)
        for _ in range(100):
            y = device.compute(model, {"x": x})["y"]
            if y[0] != -number or y[-1] != -number:
                wrong.append(number)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


@pytest.fixture(params=["nxrt_ep_cpu", "onnxruntime_ep_webgpu"])
def plugin_device(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Device:
    """A device of a plug-in; WebGPU's memory is not the host's."""
    package = pytest.importorskip(request.param, reason=f"{request.param} is not installed")
    provider = "cpu_ep"
    if request.param == "onnxruntime_ep_webgpu":
        if not {"VK_ICD_FILENAMES", "VK_DRIVER_FILES"} & config.load().visible.keys():
            pytest.skip("no Vulkan driver is set: VK_ICD_FILENAMES names none")
        monkeypatch.setenv("ORT_WEBGPU_EP_ALLOW_SOFTWARE_ADAPTER", "1")
        provider = "WebGpuExecutionProvider"
    spec = SessionSpec(provider, {}, 0, package.get_library_path())
    return Device("/device:NPU:0", device_class="NPU", session=spec)


@pytest.mark.parametrize("kind", ["numpy", "torch", "ort"])
def test_plugins_take_and_give_every_kind(kind: str, plugin_device: Device) -> None:
    model = OnnxModel(tiny_model())
    make: Any = {"numpy": np.copy, "torch": torch.tensor, "ort": ort.OrtValue.ortvalue_from_numpy}
    x = np.array([[1, -2, 3, 0], [-1, 2, 0, 4]], np.float32)
    expected = np.array(expected_values(), np.float32).reshape(2, 4)
    feeds = [{"x": make[kind](x * factor)} for factor in range(1, 5)]
    results = [plugin_device.compute(model, each)["y"] for each in feeds]
    for factor, y in enumerate(results, 1):
        np.testing.assert_allclose(as_array(y), expected * factor)


def test_a_plugin_that_gives_no_output_is_told_of() -> None:
    package = pytest.importorskip("nxrt_ep_cpu", reason="nxrt_ep_cpu is not installed")
    spec = SessionSpec("cpu_ep", {}, 0, package.get_library_path())
    kinds = {"y": (TensorProto.FLOAT, ["n"]), "mask": (TensorProto.BOOL, ["n"])}
    node = helper.make_node("Dropout", ["x"], ["y", "mask"])  # its mask is left out
    model = built([node], {"x": (TensorProto.FLOAT, ["n"])}, kinds)
    device = Device("/device:NPU:0", device_class="NPU", session=spec)
    with pytest.raises(NotLiveError, match=r"cpu_ep is broken; Only OrtValues that are Tensors"):
        device.compute(model, {"x": np.ones(3, np.float32)})


def test_values_in_a_devices_own_memory_go_in(plugin_device: Device) -> None:
    spec = plugin_device.session
    assert spec is not None
    model = OnnxModel(tiny_model())
    model.session(plugin_device)
    value = empty_value(spec, (2, 4), "float32")
    value.update_inplace(np.ones((2, 4), np.float32))
    assert value.device_name() == ("webgpu" if "WebGpu" in spec.provider else "cpu")
    for _ in range(3):
        y = plugin_device.compute(model, {"x": value})["y"]
        np.testing.assert_allclose(y.numpy(), [[2, 0, 2, 5]] * 2)


def test_a_model_does_not_keep_a_device_alive(device: Device) -> None:
    model = negated([3])
    other = Device("/device:CPU:1", session=SessionSpec(CPU_PROVIDER))
    other.compute(model, {"x": np.ones(3, np.float32)})
    assert len(model._idle) == 1
    del other
    gc.collect()
    assert model._idle == {}
