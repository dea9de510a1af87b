"""What running a kernel by its name costs, over calling its function."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from devicecore.device import Device
from devicecore.device_factory import FactoryRegistry
from devicecore.device_mgr import DeviceMgr
from devicecore.kernels import Kernel, KernelRegistry

if TYPE_CHECKING:
    from collections.abc import Callable

X = np.zeros(1)


def nothing(_device: Any, x: Any) -> Any:
    return x


def takes_all(_device: Any, _x: Any) -> bool:
    return True


@pytest.fixture
def device() -> Device:
    registry = KernelRegistry()
    registry.register(Kernel("plain", nothing, "CPU"))
    registry.register(Kernel("picky", nothing, "CPU", supports=takes_all))
    return Device("/job:localhost/replica:0/task:0/device:CPU:0", registry=registry)


def bench_bare_call(device: Device, statement: Callable[..., None]) -> None:
    statement("function(device, x)", function=nothing, device=device, x=X)


def bench_bare_call_and_predicate(device: Device, statement: Callable[..., None]) -> None:
    statement(
        "takes(device, x) and function(device, x)",
        takes=takes_all,
        function=nothing,
        device=device,
        x=X,
    )


def bench_compute_no_predicate(device: Device, statement: Callable[..., None]) -> None:
    assert device.compute("plain", X) is X
    statement("device.compute('plain', x)", device=device, x=X)


def bench_compute_one_predicate(device: Device, statement: Callable[..., None]) -> None:
    assert device.compute("picky", X) is X
    statement("device.compute('picky', x)", device=device, x=X)


def bench_compute_kernel_object(device: Device, statement: Callable[..., None]) -> None:
    statement("device.compute(kernel, x)", device=device, x=X, kernel=Kernel("k", nothing, "CPU"))


def bench_compute_callable(device: Device, statement: Callable[..., None]) -> None:
    statement("device.compute(function, x)", device=device, x=X, function=nothing)


def bench_manager_compute(device: Device, statement: Callable[..., None]) -> None:
    manager = DeviceMgr([device], registry=FactoryRegistry())
    assert manager.compute("plain", X) is X
    statement("manager.compute('plain', x)", manager=manager, x=X)


def bench_compute_async(device: Device, statement: Callable[..., None]) -> None:
    assert device.compute_async("plain", X).result() is X
    statement("device.compute_async('plain', x).result()", device=device, x=X)
    device.close()


def bench_peer_torch_library_raw(statement: Callable[..., None]) -> None:
    torch = pytest.importorskip("torch")
    library = torch.library.Library("devicecore_bench", "DEF")
    library.define("nothing(Tensor x) -> ()")
    library.impl("nothing", lambda _: None, "CPU")
    operation = torch.ops.devicecore_bench.nothing
    operation(torch.zeros(1))
    statement("operation(x)", operation=operation, x=torch.zeros(1))


def bench_peer_torch_ops(statement: Callable[..., None]) -> None:
    torch = pytest.importorskip("torch")
    x = torch.zeros(1)
    statement("operation(x)", operation=torch.ops.aten.alias.default, x=x)


def bench_peer_onnxruntime_run(statement: Callable[..., None]) -> None:
    onnxruntime = pytest.importorskip("onnxruntime")
    onnx = pytest.importorskip("onnx")
    one = [onnx.helper.make_tensor_value_info(name, 1, [1]) for name in ("x", "y")]
    graph = onnx.helper.make_graph(
        [onnx.helper.make_node("Identity", ["x"], ["y"])], "identity", one[:1], one[1:]
    )
    model = onnx.helper.make_model(
        graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=9
    )
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    inputs = {"x": np.zeros(1, "float32")}
    assert session.run(None, inputs)[0] == [0]
    statement("run(None, inputs)", run=session.run, inputs=inputs)
