"""What a call of a model costs on a CUDA GPU, beside ONNX Runtime's own binding and torch.

Run it on the machine itself: ``python benchmarks/gpu/onnx_call.py results.json COMMIT``. The model
is ``relu(x @ w)`` with x 64 x 512 and w 512 x 512. Checks the numbers first, and prints a short
table last. Each result is on the GPU, ready for torch: either computed, or queued on its stream.
"""

from __future__ import annotations

import json
import platform
import statistics
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx
import onnxruntime  # type: ignore[import-untyped]
import torch

from devicecore.device_factory import DeviceOptions, default_registry
from devicecore.onnx import OnnxModel

if TYPE_CHECKING:
    from collections.abc import Callable

ROWS, SIZE = 64, 512
CALLS = 500
ROUNDS = 31


def model_and_weights() -> tuple[bytes, Any]:
    """Return the model and its weights, a numpy array."""
    weights = np.random.default_rng(0).standard_normal((SIZE, SIZE), np.float32)
    make = onnx.helper
    ports = [make.make_tensor_value_info(name, 1, [ROWS, SIZE]) for name in ("x", "y")]
    nodes = [make.make_node("MatMul", ["x", "w"], ["xw"]), make.make_node("Relu", ["xw"], ["y"])]
    initial = [onnx.numpy_helper.from_array(weights, "w")]
    graph = make.make_graph(nodes, "layer", ports[:1], ports[1:], initial)
    opset = [make.make_opsetid("", 17)]
    return make.make_model(graph, opset_imports=opset, ir_version=9).SerializeToString(), weights


def calls_of(device: Any, model: OnnxModel, x: torch.Tensor) -> dict[str, Callable[[], Any]]:
    """Return the calls to compare; each gives its result."""
    session = model.session(device).session
    y = torch.empty_like(x)

    def bind(binding: Any, out: torch.Tensor) -> None:
        for method, name, tensor in (
            (binding.bind_input, "x", x),
            (binding.bind_output, "y", out),
        ):
            method(name, "cuda", 0, np.float32, tuple(tensor.shape), tensor.data_ptr())

    bound = session.io_binding()
    bind(bound, y)
    again = session.io_binding()

    def bare() -> torch.Tensor:
        session.run_with_iobinding(bound)
        return y

    def fresh() -> torch.Tensor:
        torch.cuda.current_stream().synchronize()
        out = torch.empty_like(x)
        bind(again, out)
        session.run_with_iobinding(again)
        return out

    weights = torch.from_numpy(model_and_weights()[1]).cuda()

    def queued() -> torch.Tensor:
        return (x @ weights).relu()

    def plain() -> torch.Tensor:
        out = queued()
        torch.cuda.current_stream().synchronize()
        return out

    feeds = {"x": x}

    def done() -> torch.Tensor:
        out: torch.Tensor = device.compute(model, feeds)["y"]
        torch.cuda.current_stream().synchronize()
        return out

    return {
        "bare IOBinding, bound once, one result": bare,
        "IOBinding, bound anew, a fresh result": fresh,
        "Device.compute, a fresh result, queued": lambda: device.compute(model, feeds)["y"],
        "Device.compute, until it is done": done,
        "torch, queued": queued,
        "torch, until it is done": plain,
    }


def medians_us(calls: dict[str, Callable[[], object]]) -> dict[str, float]:
    """Return the median over rounds of the time of each call, in µs; the calls take turns."""
    rounds: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(3 + ROUNDS):
        for name, call in calls.items():
            torch.cuda.synchronize()
            start = time.perf_counter()
            for _ in range(CALLS):
                call()
            torch.cuda.synchronize()
            rounds[name].append((time.perf_counter() - start) / CALLS * 1e6)
    return {name: statistics.median(found[3:]) for name, found in rounds.items()}


def main() -> int:
    """Check, time, write the JSON and print the table."""
    device = default_registry().new_device("CUDA", DeviceOptions(frameworks=("onnx",)), "")
    source, weights = model_and_weights()
    model = OnnxModel(source)
    x = torch.from_numpy(np.random.default_rng(1).standard_normal((ROWS, SIZE), np.float32))
    expected = np.maximum(x.numpy().astype(np.float64) @ weights.astype(np.float64), 0)
    calls = calls_of(device, model, x.cuda())
    errors = {
        name: float(np.abs(call().cpu().numpy() - expected).max()) for name, call in calls.items()
    }
    session = model.session(device)
    found: dict[str, Any] = {
        "machine": {
            "GPU": torch.cuda.get_device_name(0),
            "torch": torch.__version__,
            "onnxruntime": onnxruntime.__version__,
            "python": platform.python_version(),
            "system": platform.platform(),
            "commit": " ".join(sys.argv[2:]),
        },
        "nodes on the GPU": f"{session.live_nodes}/{session.total_nodes}",
        "largest_error": errors,
        "us": medians_us(calls),
    }
    Path(sys.argv[1]).write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")
    first = next(iter(found["us"].values()))
    for name, value in found["us"].items():
        print(f"{name:40} {value:8.2f} us  {value / first:5.2f}  error {errors[name]:.1e}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
