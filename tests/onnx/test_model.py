"""ONNX models as kernels of a device."""

import os
import pickle
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper

from devicecore.device import Device
from devicecore.errors import FallbackForbiddenError, ModelError, NotLiveError
from devicecore.ledger import Ledger
from devicecore.onnx import OnnxModel
from devicecore.ort import CPU_PROVIDER, SessionSpec
from devicecore.ort.tiny_model import expected_values, tiny_model

pytest.importorskip("onnxruntime")
X = np.array([[1, -2, 3, 0], [-1, 2, 0, 4]], np.float32)
GIVE = "give a numpy array, a torch tensor or an OrtValue"


def cpu_device() -> Device:
    return Device("/device:CPU:0", session=SessionSpec(CPU_PROVIDER), frameworks=("onnx",))


@pytest.fixture
def device() -> Device:
    return cpu_device()


@pytest.fixture
def plugin_device() -> Device:
    reason = "no plug-in provider that works on this CPU is installed"
    package = pytest.importorskip("nxrt_ep_cpu", reason=reason)
    spec = SessionSpec("cpu_ep", {}, 0, package.get_library_path())
    return Device("/device:NPU:0", device_class="NPU", session=spec)


def built(nodes: list[Any], inputs: dict[str, Any], *outputs: str, weights: Any = ()) -> bytes:
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info(name, *kind) for name, kind in inputs.items()],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in outputs],
        list(weights),
    )
    opset = [helper.make_opsetid("", 13)]
    return bytes(helper.make_model(graph, opset_imports=opset, ir_version=8).SerializeToString())


def mixed() -> bytes:
    """Return a model of one node that the plug-in takes, and one that it leaves to the CPU."""
    weights = [helper.make_tensor("w", 1, [4, 4], np.eye(4, dtype=np.float32).ravel())]
    nodes = [helper.make_node("MatMul", ["x", "w"], ["t"]), helper.make_node("Det", ["t"], ["y"])]
    return built(nodes, {"x": (1, [4, 4])}, "y", weights=weights)


def test_a_model_is_a_kernel(device: Device) -> None:
    result = device.compute(OnnxModel(tiny_model()), {"x": X})
    assert list(result) == ["y"]
    assert tuple(result["y"].ravel()) == expected_values()


def test_a_file_gives_the_same_as_its_bytes(device: Device, tmp_path: Path) -> None:
    file = tmp_path / "model.onnx"
    file.write_bytes(tiny_model())
    from_file, from_bytes = OnnxModel(str(file)), OnnxModel(tiny_model())
    assert from_file.digest == from_bytes.digest
    np.testing.assert_array_equal(
        device.compute(from_file, {"x": X})["y"], device.compute(from_bytes, {"x": X})["y"]
    )


def test_results_are_named_and_in_order(device: Device) -> None:
    nodes = [helper.make_node("Relu", ["x"], ["b"]), helper.make_node("Neg", ["x"], ["a"])]
    result = device.compute(OnnxModel(built(nodes, {"x": (1, [2, 4])}, "b", "a")), {"x": X})
    assert list(result) == ["b", "a"]
    np.testing.assert_array_equal(result["a"], -X)


def test_a_later_call_does_not_change_a_result(device: Device) -> None:
    model = OnnxModel(tiny_model())
    first = device.compute(model, {"x": X})["y"]
    before = first.copy()
    device.compute(model, {"x": X * 2})
    np.testing.assert_array_equal(first, before)


def test_equal_models_share_a_session_and_others_do_not(device: Device) -> None:
    one, same = OnnxModel(tiny_model()), OnnxModel(tiny_model())
    assert one.session(device) is same.session(device)
    assert OnnxModel(tiny_model(), precision="default").session(device) is not one.session(device)
    assert OnnxModel(tiny_model(), min_nodes=1).session(device) is not one.session(device)
    assert one.session(cpu_device()) is not one.session(device)


def test_closing_the_device_drops_its_sessions(device: Device) -> None:
    model = OnnxModel(tiny_model())
    first = model.session(device)
    device.resource_mgr.clear("onnx")
    assert model.session(device) is not first


def test_a_model_pickles_without_its_session(device: Device, tmp_path: Path) -> None:
    file = tmp_path / "model.onnx"
    file.write_bytes(tiny_model())
    model = OnnxModel(file, precision="default", min_nodes=0.5)
    device.compute(model, {"x": X})
    copy = pickle.loads(pickle.dumps(model))
    assert (copy.model, copy.precision, copy.min_nodes) == (file, "default", 0.5)
    assert tuple(device.compute(copy, {"x": X})["y"].ravel()) == expected_values()


@pytest.mark.parametrize(
    ("feeds", "words"),
    [
        ({}, "it takes 'x': float32 [2, 4], given nothing"),
        ({"z": X}, "it takes 'x': float32 [2, 4], given 'z'"),
        ({"x": X, "z": X}, "it takes 'x': float32 [2, 4], given also 'z'"),
        ({"x": X.astype("float64")}, "it takes 'x': float32 [2, 4], given float64 [2, 4]"),
        ({"x": X[0]}, "it takes 'x': float32 [2, 4], given float32 [4]"),
        ({"x": X[:1]}, "it takes 'x': float32 [2, 4], given float32 [1, 4]"),
        ({"x": X.tolist()}, f"it takes 'x': float32 [2, 4], given a list; {GIVE}"),
        ({"x": None}, f"it takes 'x': float32 [2, 4], given a NoneType; {GIVE}"),
    ],
    ids=["nothing", "other name", "one too many", "dtype", "rank", "size", "list", "None"],
)
def test_what_does_not_fit_is_one_clear_error(
    feeds: dict[str, Any], words: str, device: Device
) -> None:
    with pytest.raises(ModelError) as caught:
        device.compute(OnnxModel(tiny_model()), feeds)
    assert str(caught.value).endswith(words)


def test_free_dimensions_take_any_size(device: Device) -> None:
    nodes = [helper.make_node("Relu", ["x"], ["y"])]
    model = OnnxModel(built(nodes, {"x": (1, ["n", 4, None])}, "y"))
    for n in (1, 7):
        x = np.ones((n, 4, n + 1), np.float32)
        assert device.compute(model, {"x": x})["y"].shape == x.shape
    with pytest.raises(ModelError, match=r"it takes 'x': float32 \[n, 4, \?\], given float32"):
        device.compute(model, {"x": np.ones((1, 5, 1), np.float32)})


@pytest.mark.parametrize(
    ("dtype", "element"),
    [
        ("float16", TensorProto.FLOAT16),
        ("float64", TensorProto.DOUBLE),
        ("int8", TensorProto.INT8),
        ("uint8", TensorProto.UINT8),
        ("int32", TensorProto.INT32),
        ("uint64", TensorProto.UINT64),
        ("bool", TensorProto.BOOL),
    ],
)
def test_every_dtype_of_numpy_goes_in(dtype: str, element: int, device: Device) -> None:
    nodes = [helper.make_node("Cast", ["x"], ["y"], to=TensorProto.FLOAT)]
    model = OnnxModel(built(nodes, {"x": (element, [3])}, "y"))
    given = np.array([0, 1, 1]).astype(dtype)
    np.testing.assert_array_equal(device.compute(model, {"x": given})["y"], [0, 1, 1])
    with pytest.raises(ModelError, match=f"it takes 'x': {dtype}"):
        device.compute(model, {"x": np.zeros(3, "complex64")})


def test_an_input_with_a_default_may_be_left_out(device: Device) -> None:
    nodes = [helper.make_node("Mul", ["x", "f"], ["y"])]
    weights = [helper.make_tensor("f", TensorProto.FLOAT, [1], [3.0])]
    model = OnnxModel(built(nodes, {"x": (1, [1]), "f": (1, [1])}, "y", weights=weights))
    one, two = np.ones(1, np.float32), np.full(1, 2, np.float32)
    assert device.compute(model, {"x": one})["y"] == pytest.approx(3)
    assert device.compute(model, {"x": one, "f": two})["y"] == pytest.approx(2)
    with pytest.raises(ModelError, match="it takes 'f': float32"):
        device.compute(model, {"x": one, "f": np.ones(1)})


def test_texts_go_in(device: Device) -> None:
    nodes = [helper.make_node("Identity", ["x"], ["y"])]
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", TensorProto.STRING, ["n"])],
        [helper.make_tensor_value_info("y", TensorProto.STRING, ["n"])],
    )
    opset = [helper.make_opsetid("", 13)]
    model = helper.make_model(graph, opset_imports=opset, ir_version=8).SerializeToString()
    result = device.compute(OnnxModel(model), {"x": np.array(["a", "bc"], object)})
    assert result["y"].tolist() == ["a", "bc"]


def test_a_missing_file_is_an_error_when_it_runs(device: Device, tmp_path: Path) -> None:
    model = OnnxModel(tmp_path / "gone.onnx")
    with pytest.raises(ModelError, match="there is no such file"):
        device.compute(model, {})


def test_arguments_are_checked_at_once() -> None:
    with pytest.raises(ValueError, match="precision is 'f64'; it can be 'f32' or 'default'"):
        OnnxModel(b"", precision="f64")  # type: ignore[arg-type]
    for share in (0, 1.5, -1):
        with pytest.raises(ValueError, match="above 0 and up to 1"):
            OnnxModel(b"", min_nodes=share)


def test_a_device_without_a_provider_says_so() -> None:
    npu = Device("/device:NPU:0", device_class="NPU")
    with pytest.raises(NotLiveError, match="ONNX Runtime has no provider for it"):
        npu.compute(OnnxModel(tiny_model()), {"x": X})


def test_a_partial_placement_is_in_the_ledger(
    plugin_device: Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = Ledger()
    monkeypatch.setattr("devicecore.onnx.model.default_ledger", lambda: ledger)
    model = OnnxModel(mixed())
    for _ in range(2):
        result = plugin_device.compute(model, {"x": np.eye(4, dtype=np.float32)})
        assert result["y"] == pytest.approx(1)
    assert model.session(plugin_device).live_nodes == 1
    (move,) = ledger.moves()
    assert (move.source, move.target) == (plugin_device.name, "CPU")
    assert move.reason == "cpu_ep does not take 1 of the 2 nodes"
    assert ledger.total == 1


def test_a_partial_placement_can_be_forbidden(
    plugin_device: Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(NotLiveError, match="takes 1 of the 2 nodes"):
        plugin_device.compute(OnnxModel(mixed(), min_nodes=1), {"x": np.eye(4, dtype=np.float32)})
    monkeypatch.setattr("devicecore.onnx.model.default_ledger", lambda: Ledger(budget=0))
    with pytest.raises(FallbackForbiddenError):
        plugin_device.compute(OnnxModel(mixed()), {"x": np.eye(4, dtype=np.float32)})


def test_a_whole_placement_is_not_in_the_ledger(
    plugin_device: Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = Ledger()
    monkeypatch.setattr("devicecore.onnx.model.default_ledger", lambda: ledger)
    plugin_device.compute(OnnxModel(tiny_model(), min_nodes=1), {"x": X})
    assert ledger.total == 0


def test_threads_share_one_session_and_mix_nothing_up(device: Device) -> None:
    model = OnnxModel(tiny_model())
    results: dict[int, list[bool]] = {}
    sessions = set()

    def work(factor: int) -> None:
        expected = np.array(expected_values(), np.float32).reshape(2, 4) * factor
        results[factor] = [
            np.array_equal(device.compute(model, {"x": X * factor})["y"], expected)
            for _ in range(50)
        ]
        sessions.add(id(model.session(device)))

    threads = [threading.Thread(target=work, args=(factor,)) for factor in range(1, 9)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == dict.fromkeys(range(1, 9), [True] * 50)
    assert len(sessions) == 1


def test_it_computes_asynchronously(device: Device) -> None:
    future = device.compute_async(OnnxModel(tiny_model()), {"x": X})
    assert tuple(future.result()["y"].ravel()) == expected_values()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="nothing forks here")
def test_a_forked_child_opens_its_own_session() -> None:
    # The work is large enough for ONNX Runtime's threads: destroying the parent's session in the
    # child would wait for them, and they are not there.
    square = {"x": (1, [512, 512])}
    product = built([helper.make_node("MatMul", ["x", "x"], ["y"])], square, "y")
    code = f"""
import os, time
import numpy as np
from devicecore.device import Device
from devicecore.onnx import OnnxModel
from devicecore.ort import CPU_PROVIDER, SessionSpec
device = Device("/device:CPU:0", session=SessionSpec(CPU_PROVIDER))
model = OnnxModel({product!r})
feeds = {{"x": np.ones((512, 512), np.float32)}}
parent = device.compute(model, feeds)["y"]
session = model.session(device)
for _ in range(4):
    time.sleep(0.05)  # until the threads sleep
    child = os.fork()
    if child == 0:
        del session
        same = np.array_equal(device.compute(model, feeds)["y"], parent)
        os._exit(0 if same and device.resource_mgr.containers() == {{"onnx": 1}} else 1)
    assert os.waitpid(child, 0)[1] == 0
assert np.array_equal(device.compute(model, feeds)["y"], parent)
assert model.session(device) is session
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)


def test_a_spawned_process_gets_the_model_by_pickle() -> None:
    code = """
import multiprocessing
import numpy as np
from devicecore.device import Device
from devicecore.onnx import OnnxModel
from devicecore.ort import CPU_PROVIDER, SessionSpec
from devicecore.ort.tiny_model import tiny_model

def run(model, spec):
    device = Device("/device:CPU:0", session=spec)
    return device.compute(model, {"x": np.ones((2, 4), np.float32)})["y"].tolist()

if __name__ == "__main__":
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        print(pool.apply(run, (OnnxModel(tiny_model()), SessionSpec(CPU_PROVIDER))))
"""
    root = Path(__file__).parents[2]
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder) / "spawns.py"
        script.write_text(code, encoding="ascii")
        run = subprocess.run(
            [sys.executable, script],
            capture_output=True,
            text=True,
            check=True,
            env=os.environ | {"PYTHONPATH": str(root)},
        )
    assert run.stdout == "[[2.0, 0.0, 2.0, 5.0], [2.0, 0.0, 2.0, 5.0]]\n"
