"""Named operations on devices that run models: ``"onnx.run"``, and those of their memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from onnx import TensorProto, helper

from devicecore.device import Device
from devicecore.device_mgr import DeviceMgr
from devicecore.errors import ModelError, NoKernelError
from devicecore.kernels import Kernel, default_kernels
from devicecore.ledger import default_ledger
from devicecore.names import DeviceName
from devicecore.onnx import OnnxModel
from devicecore.ort import CPU_PROVIDER, SessionSpec
from devicecore.ort.tiny_model import expected_values, tiny_model

if TYPE_CHECKING:
    from pathlib import Path

pytest.importorskip("onnxruntime")
X = np.array([[1, -2, 3, 0], [-1, 2, 0, 4]], np.float32)
HOST = DeviceName(device_type="CPU", index=0)
# All of them on the CPU's provider, since theirs are not here.
SESSION_TYPES = ["TENSORRT", "COREML", "OPENVINO", "WEBGPU"]


def made(device_type: str, memory: DeviceName | None = None) -> Device:
    return Device(
        f"/device:{device_type}:0",
        device_class="CPU" if device_type == "CPU" else "GPU",
        memory=memory,
        session=SessionSpec(CPU_PROVIDER),
        frameworks=("onnx",),
    )


@pytest.fixture
def manager() -> DeviceMgr:
    """CPU:0, and COREML:0 and OPENVINO:0 in its memory."""
    return DeviceMgr([made("CPU"), made("COREML", HOST), made("OPENVINO", HOST)])


@pytest.fixture
def double() -> Any:
    """An operation of the host's."""
    kernel = Kernel("test_onnx_operation.double", lambda device, x: (device.label, 2 * x), "CPU")
    default_kernels().register(kernel)
    yield kernel.op
    default_kernels().unregister(kernel)


@pytest.mark.parametrize("device_type", [*SESSION_TYPES, "CPU", "ACME"])
@pytest.mark.parametrize("kind", ["OnnxModel", "bytes", "str", "Path"])
def test_every_device_with_a_provider_runs_models(
    device_type: str, kind: str, tmp_path: Path
) -> None:
    file = tmp_path / "m.onnx"
    file.write_bytes(tiny_model())
    model = {"OnnxModel": OnnxModel(file), "bytes": tiny_model(), "str": str(file), "Path": file}
    result = made(device_type).compute("onnx.run", model[kind], {"x": X})
    assert tuple(result["y"].ravel()) == expected_values()


def test_a_manager_finds_the_device(manager: DeviceMgr) -> None:
    first = manager.best_device("onnx.run")
    assert first is manager.lookup_device("COREML:0")
    result = manager.compute("onnx.run", tiny_model(), {"x": X}, policy="require:openvino")
    assert tuple(result["y"].ravel()) == expected_values()


def test_a_device_without_a_provider_is_refused() -> None:
    with pytest.raises(NoKernelError, match="devices that ONNX Runtime can use"):
        Device("/device:XPU:0").compute("onnx.run", tiny_model(), {"x": X})


def test_options_are_those_of_a_model() -> None:
    device = made("COREML")
    assert device.compute("onnx.run", tiny_model(), {"x": X}, precision="default", threads=1)
    with pytest.raises(TypeError, match="speed"):
        device.compute("onnx.run", tiny_model(), {"x": X}, speed=9)
    with pytest.raises(TypeError, match="has its options already"):
        device.compute("onnx.run", OnnxModel(tiny_model()), {"x": X}, threads=1)
    with pytest.raises(TypeError, match="a file's path or its bytes"):
        device.compute("onnx.run", 3, {"x": X})
    with pytest.raises(ModelError, match="there is no such file"):
        device.compute("onnx.run", "gone.onnx", {"x": X})
    with pytest.raises(ModelError, match="it takes 'x': float32"):
        device.compute("onnx.run", tiny_model(), {"x": X.astype(float)})


def test_a_file_that_changed_is_read_anew(tmp_path: Path) -> None:
    file, device = tmp_path / "m.onnx", made("COREML")
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in "xy"]
    results: list[Any] = []
    for operator in ("Neg", "Abs"):
        node = helper.make_node(operator, ["x"], ["y"])
        graph = helper.make_graph([node], f"{operator} with a name", values[:1], values[1:])
        opset = [helper.make_opsetid("", 17)]
        model = helper.make_model(graph, opset_imports=opset, ir_version=8)
        file.write_bytes(model.SerializeToString() + b"\x1a\x02a " * len(results))
        results.append(device.compute("onnx.run", file, {"x": X})["y"])
    np.testing.assert_array_equal(results, [-X, abs(X)])


def test_the_hosts_operations_run_where_the_memory_is(manager: DeviceMgr, double: str) -> None:
    for name in ("COREML:0", "OPENVINO:0"):
        device = manager.lookup_device(name)
        before = default_ledger().total
        assert device.compute(double, 21) == ("CPU:0", 42)
        assert device.compute_async(double, 21).result(30) == ("CPU:0", 42)
        assert default_ledger().total == before + 2
        moves = {(move.op, move.source, move.target) for move in default_ledger().moves()}
        assert (double, device.name, manager.lookup_device("CPU:0").name) in moves


@pytest.mark.parametrize("policy", ["require:coreml", "prefer:coreml,cpu"])
def test_a_policy_that_names_the_device_finds_them_too(
    manager: DeviceMgr, double: str, policy: str
) -> None:
    assert manager.compute(double, 21, policy=policy) == ("CPU:0", 42)


def test_where_none_is_named_the_host_is_chosen_itself(manager: DeviceMgr, double: str) -> None:
    assert manager.best_device(double) is manager.lookup_device("CPU:0")
    assert manager.compute(double, 21) == ("CPU:0", 42)


def test_what_the_memory_has_no_kernel_for_is_refused(manager: DeviceMgr) -> None:
    with pytest.raises(NoKernelError, match=r"nobody\.op"):
        manager.lookup_device("COREML:0").compute("nobody.op", 1)


def test_a_device_with_memory_of_its_own_has_models_only(double: str) -> None:
    manager = DeviceMgr([made("CPU"), made("WEBGPU")])
    with pytest.raises(NoKernelError):
        manager.lookup_device("WEBGPU:0").compute(double, 21)


def test_opencvs_operations_run_on_coreml(manager: DeviceMgr) -> None:
    cv2 = pytest.importorskip("cv2")
    image = np.arange(48, dtype=np.uint8).reshape(4, 4, 3)
    result = manager.lookup_device("COREML:0").compute("cv2.resize", image, (2, 2))
    np.testing.assert_array_equal(result, cv2.resize(image, (2, 2)))
