"""ONNX's backend interface on devices, and what its suite tells of one."""

import subprocess
import sys
from pathlib import Path
from typing import Any
from unittest import SkipTest

import numpy as np
import pytest
from onnx import TensorProto, checker, helper, load_from_string

from devicecore.device import Device
from devicecore.errors import ModelError, NotLiveError
from devicecore.ledger import default_ledger
from devicecore.onnx import OnnxModel
from devicecore.ort import CPU_PROVIDER, SessionSpec
from devicecore.ort.tiny_model import expected_values, tiny_model
from devicecore.testing import OnnxBackend, run_onnx_suite

pytest.importorskip("onnxruntime")
X = np.array([[1, -2, 3, 0], [-1, 2, 0, 4]], np.float32)


def model(node: Any, element: int = TensorProto.FLOAT, made: tuple[str, ...] = ()) -> Any:
    """Return a model of *node* from ``x``, a matrix, to ``y`` of the shape *made*."""
    graph = helper.make_graph(
        [node],
        "g",
        [helper.make_tensor_value_info("x", element, ["n", "m"])],
        [helper.make_tensor_value_info("y", element, made)],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


DET = helper.make_node("Det", ["x"], ["y"])  # the plug-in has no kernel for it


@pytest.fixture
def plugin() -> Device:
    package = pytest.importorskip("nxrt_ep_cpu", reason="no plug-in that works here is installed")
    spec = SessionSpec("cpu_ep", {}, 0, package.get_library_path())
    return Device("/device:NPU:0", device_class="NPU", session=spec)


@pytest.fixture
def cpu() -> Device:
    return Device("/device:CPU:0", session=SessionSpec(CPU_PROVIDER))


@pytest.mark.parametrize("device", ["CPU", "cpu:0", "/device:CPU:0"])
def test_a_model_runs_on_the_device_that_is_asked_for(device: str) -> None:
    (y,) = OnnxBackend.run_model(load_from_string(tiny_model()), [X], device)
    assert tuple(y.ravel()) == expected_values()
    (y,) = OnnxBackend.prepare(tiny_model(), device).run(X)
    assert tuple(y.ravel()) == expected_values()


def test_one_operator_runs() -> None:
    node = helper.make_node("Add", ["a", "b"], ["y"])
    (y,) = OnnxBackend.run_node(node, [np.float32(2), np.ones(2, np.float32)])
    np.testing.assert_array_equal(y, [3, 3])
    clip = helper.make_node("Clip", ["x", "", "most"], ["y"])
    (y,) = OnnxBackend.run_node(clip, [np.array([1.0, 9.0]), np.array(4.0)], opset_version=13)
    np.testing.assert_array_equal(y, [1, 4])


def test_what_is_no_operator_is_refused() -> None:
    with pytest.raises(checker.ValidationError, match="No Op registered for Nothing"):
        OnnxBackend.run_node(helper.make_node("Nothing", ["x"], ["y"]), [X])


def test_it_supports_what_is_live() -> None:
    assert OnnxBackend.supports_device("CPU")
    assert not OnnxBackend.supports_device("NOTHING:7")
    assert not OnnxBackend.supports_device("no device")


def test_a_device_of_ones_own(plugin: Device) -> None:
    class OnPlugin(OnnxBackend):
        on = plugin

    assert OnPlugin.supports_device("CPU")
    assert not OnPlugin.supports_device("CUDA")
    opened = OnPlugin.prepare(tiny_model())
    assert opened.device is plugin
    assert opened.nodes == {"cpu_ep": 2}


def test_a_model_without_a_kernel_is_skipped() -> None:
    node = helper.make_node("MatMul", ["x", "x"], ["y"])
    with pytest.raises(SkipTest, match="Could not find an implementation for MatMul"):
        OnnxBackend.prepare(model(node, TensorProto.BFLOAT16, ("n", "m")))


def test_a_model_of_which_the_device_takes_nothing(plugin: Device, cpu: Device) -> None:
    class Alone(OnnxBackend):
        on = plugin

    class WithSpare(Alone):
        spare = cpu

    with pytest.raises(SkipTest, match="it takes none of the model's 1 nodes"):
        Alone.prepare(model(DET))
    before = default_ledger().total
    opened = WithSpare.prepare(model(DET))
    assert opened.device is cpu
    assert opened.nodes == {CPU_PROVIDER: 1}
    assert default_ledger().total == before + 1
    np.testing.assert_allclose(opened.run([np.eye(3, dtype=np.float32) * 2])[0], 8)


def test_a_fault_of_the_model_is_an_error() -> None:
    with pytest.raises(ModelError, match="it is no ONNX model"):
        OnnxBackend.prepare(b"this is no model")


def test_a_device_that_does_not_work_is_an_error(tmp_path: Path) -> None:
    class Broken(OnnxBackend):
        on = Device("/device:NPU:0", session=SessionSpec("x", {}, 0, str(tmp_path / "none.so")))
        spare = Device("/device:CPU:0", session=SessionSpec(CPU_PROVIDER))

    with pytest.raises(NotLiveError, match=r"none\.so is broken"):
        Broken.prepare(tiny_model())


def test_many_models_are_not_all_kept_open(cpu: Device) -> None:
    class OnCpu(OnnxBackend):
        on = cpu

    first = OnCpu.prepare(tiny_model())
    for size in range(1, 80):
        node = helper.make_node("LeakyRelu", ["x"], ["y"], alpha=float(size))
        OnCpu.prepare(model(node, made=("n", "m")))
        assert sum(cpu.resource_mgr.containers().values()) <= 32
    assert tuple(first.run([X])[0].ravel()) == expected_values()


def test_options_reach_the_model(cpu: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    class Options(OnnxBackend):
        on = cpu
        model_options = {"min_nodes": 7}  # noqa: RUF012 - nobody changes it

    with pytest.raises(ValueError, match="min_nodes is 7"):
        Options.prepare(tiny_model())
    assert OnnxModel(tiny_model(), **OnnxBackend.model_options).threads == 1


def test_the_suite_tells_of_each_case(cpu: Device) -> None:
    class OnCpu(OnnxBackend):
        on = cpu

    names = "^test_(abs|adam|add_bcast|cast_FLOAT_to_FLOAT4E2M1|training_dropout)$"
    found = {each.name: each for each in run_onnx_suite(OnCpu, names=names)}
    assert {name: (each.outcome, each.reason) for name, each in found.items()} == {
        "test_abs": ("passed", ""),
        "test_add_bcast": ("passed", ""),
        "test_adam": ("failed", "unknown operator"),
        "test_cast_FLOAT_to_FLOAT4E2M1": ("skipped", "no kernel"),
        "test_training_dropout": ("failed", "other values"),
    }
    assert found["test_abs"].nodes == {CPU_PROVIDER: 1}
    assert found["test_adam"].nodes == {}
    assert "no operator 'Adam' of 'ai.onnx.preview.training'" in found["test_adam"].detail
    assert "Not equal to tolerance" in found["test_training_dropout"].detail


@pytest.mark.filterwarnings("ignore:onnx.version is deprecated")  # ONNX Runtime imports it
def test_the_suite_runs_on_other_backends_too() -> None:
    from onnxruntime.backend import backend  # type: ignore[import-untyped]

    found = list(run_onnx_suite(backend.OnnxRuntimeBackend, names="^test_(abs|sin)$"))
    assert [(each.name, each.outcome) for each in found] == [
        ("test_abs", "passed"),
        ("test_sin", "passed"),
    ]


def test_onnx_is_imported_when_it_is_needed() -> None:
    code = (
        "import sys, devicecore.testing as t; assert not {'onnx', 'numpy'} & set(sys.modules)\n"
        "t.OnnxBackend; assert 'onnx' in sys.modules and 'torch' not in sys.modules\n"
        "try: t.nothing\nexcept AttributeError as e: print(e)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True, timeout=60
    )
    assert done.stdout == "module 'devicecore.testing' has no attribute 'nothing'\n"
