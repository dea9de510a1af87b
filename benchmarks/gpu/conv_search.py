"""What each `cudnn_conv_algo_search` of ONNX Runtime's CUDA provider costs where shapes change.

Run it on a machine with a CUDA GPU and onnxruntime-gpu:
``python benchmarks/gpu/conv_search.py results.json COMMIT MODELS``. MODELS is a folder with the
models of RapidOCR and Silero as their wheels have them; a vocoder with random weights is made here.
Each model and search has a process of its own, and they take turns. Each compares a result with the
CPU's. The JSON is written after each process, and a short table is printed last.
"""

from __future__ import annotations

import json
import platform
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

SEARCHES = ("EXHAUSTIVE", "HEURISTIC", "DEFAULT")
ROUNDS = 2
SHAPES = 8
STEADY_CALLS = 20
LIMIT_S = 45
CUDA, CPU = "CUDAExecutionProvider", "CPUExecutionProvider"


def detector_feeds(step: int) -> dict[str, Any]:
    """Return a page whose sides grow."""
    side = 320 + 96 * step
    return {"x": _noise(1, 3, side, side + 32)}


def recogniser_feeds(step: int) -> dict[str, Any]:
    """Return six lines of text whose width grows."""
    return {"x": _noise(6, 3, 48, 160 + 96 * step)}


def speech_feeds(step: int) -> dict[str, Any]:
    """Return more and more windows of sound."""
    state = np.zeros((1, 1, 128), np.float32)
    return {"input": _noise(16 * (1 + step), 576), "h": state, "c": state}


def vocoder_feeds(step: int) -> dict[str, Any]:
    """Return a mel spectrogram that grows by 128 frames."""
    return {"x": _noise(1, 80, 128 * (1 + step))}


MODELS = {
    "PP-OCRv6_det_small.onnx": detector_feeds,
    "PP-OCRv6_rec_small.onnx": recogniser_feeds,
    "silero_vad_16k_sequence.onnx": speech_feeds,
    "vocoder": vocoder_feeds,
}


def _noise(*shape: int) -> Any:
    return np.random.default_rng(sum(shape)).standard_normal(shape, np.float32)


def vocoder() -> bytes:
    """Return a generator like HiFi-GAN's: four upsamplings with dilated residuals."""
    import onnx

    random = np.random.default_rng(0)
    make: Any = onnx.helper
    nodes: list[Any] = []
    weights: list[Any] = []

    def conv(op: str, source: str, shape: tuple[int, int, int], **attributes: Any) -> str:
        name = f"{op}{len(nodes)}"
        fan_in = shape[1] * shape[2] if op == "Conv" else shape[0] * shape[2]
        values = random.standard_normal(shape, np.float32) / np.float32(fan_in**0.5)
        weights.append(onnx.numpy_helper.from_array(values, f"{name}_w"))
        nodes.append(make.make_node(op, [source, f"{name}_w"], [name], **attributes))
        return name

    def apply(op: str, *sources: str, **attributes: Any) -> str:
        name = f"{op}{len(nodes)}"
        nodes.append(make.make_node(op, list(sources), [name], **attributes))
        return name

    value, channels = conv("Conv", "x", (256, 80, 7), pads=[3, 3]), 256
    for factor in (8, 8, 2, 2):
        value = apply("LeakyRelu", value, alpha=0.1)
        shape = (channels, channels // 2, 2 * factor)
        value = conv(
            "ConvTranspose",
            value,
            shape,
            strides=[factor],
            pads=[factor // 2, factor - factor // 2],
        )
        channels //= 2
        for width in (3, 7):
            for dilation in (1, 3, 5):
                pad = dilation * (width - 1) // 2
                inner = apply("LeakyRelu", value, alpha=0.1)
                inner = conv(
                    "Conv",
                    inner,
                    (channels, channels, width),
                    dilations=[dilation],
                    pads=[pad, pad],
                )
                value = apply("Add", value, inner)
    value = conv("Conv", value, (1, channels, 7), pads=[3, 3])
    nodes.append(make.make_node("Tanh", [value], ["y"]))
    ports = [make.make_tensor_value_info("x", 1, [1, 80, "T"])]
    out = [make.make_tensor_value_info("y", 1, [1, 1, "S"])]
    graph = make.make_graph(nodes, "vocoder", ports, out, weights)
    opset = [make.make_opsetid("", 17)]
    model = make.make_model(graph, opset_imports=opset, ir_version=9)
    source: bytes = model.SerializeToString()
    return source


def measure(model: str, search: str, folder: str) -> dict[str, Any]:
    """Return the times of one model with one search, in ms, and its largest relative error."""
    import onnxruntime  # type: ignore[import-untyped]
    import torch  # brings CUDA's libraries, and its memory is read

    source: Any = vocoder() if model == "vocoder" else str(Path(folder) / model)
    feeds = [MODELS[model](step) for step in range(SHAPES)]
    options = {"cudnn_conv_algo_search": search, "use_tf32": "0"}
    session = onnxruntime.InferenceSession(source, providers=[(CUDA, options), CPU])
    if session.get_providers()[0] != CUDA:
        sys.exit("the CUDA provider is not live")
    reference = onnxruntime.InferenceSession(source, providers=[CPU])

    def call(given: dict[str, Any]) -> float:
        start = time.perf_counter()
        session.run(None, given)
        return (time.perf_counter() - start) * 1e3

    free = torch.cuda.mem_get_info()[0]
    first = call(feeds[0])
    growing = [call(given) for given in feeds[1:]]
    again = [[call(given) for given in feeds[1:]] for _ in range(3)]
    used = free - torch.cuda.mem_get_info()[0]
    steady = [call(feeds[-1]) for _ in range(STEADY_CALLS)]
    found, expected = (each.run(None, feeds[1])[0] for each in (session, reference))
    return {
        "first_call_ms": first,
        "new_shape_ms": statistics.median(growing),
        "new_shapes_total_ms": sum(growing),
        "seen_shapes_total_ms": [sum(each) for each in again],
        "steady_ms": statistics.median(steady),
        "memory_mb": used / 1e6,
        "relative_error": float(np.abs(found - expected).max() / np.abs(expected).max()),
    }


def main() -> int:
    """Measure each model with each search in turns, write the JSON and print the table."""
    out, commit, folder = sys.argv[1:4]
    figures: dict[str, dict[str, list[Any]]] = {m: {s: [] for s in SEARCHES} for m in MODELS}
    results = {"machine": machine(commit), "shapes": SHAPES, "models": figures}
    for _ in range(ROUNDS):
        for model, by_search in figures.items():
            for search, rounds in by_search.items():
                rounds.append(measure_in_child(model, search, folder))
                Path(out).write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    print(f"{'model':26} {'search':10} first  new  seen again  steady (ms)  MB  error")
    for model, by_search in figures.items():
        for search, rounds in by_search.items():
            for each in rounds:
                print(f"{model:26} {search:10} {row(each)}")
    return 0


def machine(commit: str) -> dict[str, Any]:
    """Return what the figures depend on."""
    import onnxruntime
    import torch

    return {
        "gpu": torch.cuda.get_device_name(0),
        "torch": torch.__version__,
        "cudnn": torch.backends.cudnn.version(),  # type: ignore[no-untyped-call]
        "onnxruntime": onnxruntime.__version__,
        "python": platform.python_version(),
        "commit": commit,
    }


def measure_in_child(model: str, search: str, folder: str) -> dict[str, Any]:
    """Return what `measure` does, or an ``error`` where it fails or takes too long."""
    command = [sys.executable, __file__, "--measure", model, search, folder]
    try:
        run = subprocess.run(command, capture_output=True, text=True, check=False, timeout=LIMIT_S)
    except subprocess.TimeoutExpired:
        return {"error": f"not done after {LIMIT_S} s"}
    if run.returncode:
        return {"error": run.stderr[-600:]}
    figures: dict[str, Any] = json.loads(run.stdout.splitlines()[-1])
    return figures


def row(figures: dict[str, Any]) -> str:
    """Return one line of the table."""
    if "error" in figures:
        return str(figures["error"])
    seen = statistics.median(figures["seen_shapes_total_ms"])
    return (
        f"{figures['first_call_ms']:6.0f} {figures['new_shapes_total_ms']:6.0f} {seen:8.1f}"
        f" {figures['steady_ms']:8.2f} {figures['memory_mb']:6.0f}"
        f" {figures['relative_error']:.0e}"
    )


if __name__ == "__main__":
    if sys.argv[1] == "--measure":
        print(json.dumps(measure(*sys.argv[2:])))
    else:
        sys.exit(main())
