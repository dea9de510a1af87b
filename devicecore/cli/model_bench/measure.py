"""A model measured in this process, which is a child that does nothing else."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import numpy as np  # noqa: TID253 - only the children that measure import this module

from devicecore.cli.model_bench.inputs import generated, loaded
from devicecore.cli.model_bench.memory import growth, peak_bytes, taken_bytes
from devicecore.cli.model_bench.outputs import as_arrays, difference, has_nan, worst
from devicecore.cli.model_bench.values import Figures, Reference
from devicecore.errors import DeviceCoreError, ModelError
from devicecore.onnx import OnnxModel
from devicecore.optional import require
from devicecore.runtime import default_runtime

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from devicecore.cli.model_bench.values import Inputs, Task
    from devicecore.device import Device

_WARM_UP_RUNS = 3
_FEEDS, _EXPECTED = "inputs.npz", "outputs.npz"


def reference(stage: Callable[[str], None], task: Task, inputs: Inputs) -> Reference:
    """Make the inputs, run them on the CPU in float32, and keep both in the folder of *task*.

    Args:
        stage: Called with a few words at the start of each step.
        task: What to do.
        inputs: Where the inputs come from.

    Raises:
        ModelError: The model is at fault, or refuses the inputs.
        UsageError: The inputs that were asked for are none of this model.
        NotLiveError: ONNX Runtime does not work on the CPU.
    """
    stage("loading the model")
    device = default_runtime().device(task.device, "onnx")
    model = OnnxModel(task.model, cache="none")
    arguments = model.session(device).session.get_inputs()
    stage("making the inputs")
    if inputs.file is None:
        feeds, given = generated(arguments, inputs.shapes, model.name)
    else:
        feeds, given = loaded(inputs.file)
    stage("running on the CPU")
    try:
        outputs = as_arrays(device.compute(model, feeds))
    except DeviceCoreError as error:
        if inputs.file is not None:
            raise
        reason = f"it refuses generated inputs ({_reason(error)})"
        fix = "give --shape NAME=SIZE,SIZE or --inputs FILE.npz"
        raise ModelError(model.name, reason, fix) from error
    _save(task.folder / _FEEDS, feeds)
    _save(task.folder / _EXPECTED, outputs)
    return Reference(given, tuple(outputs), has_nan(outputs.values()))


def measure(stage: Callable[[str], None], task: Task, known: Reference) -> Figures:
    """Load a model on a device, run it, and compare its outputs with those of the CPU.

    A time is from before ``device.compute`` until the outputs are on the host.

    Args:
        stage: Called with a few words at the start of each step.
        task: What to do.
        known: What the CPU answers.

    Raises:
        DeviceCoreError: The device cannot run the model.
    """
    stage("opening the device")
    require("onnxruntime", extra="onnx")  # which every device needs, so no part of any figure
    device = default_runtime().device(task.device, "onnx")
    feeds = _load(task.folder / _FEEDS, [each.name for each in known.inputs], texts=object)
    model = OnnxModel(task.model, precision=task.precision, cache=task.cache)
    host, memory = peak_bytes(), taken_bytes(device)
    stage("loading the model")
    start = time.perf_counter()
    session = model.session(device)
    load_s = time.perf_counter() - start
    stage("running for the first time")
    start = time.perf_counter()
    first = device.compute(model, feeds)
    first_run_s = time.perf_counter() - start
    stage("running")
    _timed_runs(device, model, feeds, _WARM_UP_RUNS, task.seconds)
    run_s, last = _timed_runs(device, model, feeds, task.runs, task.seconds)
    host_bytes, device_bytes = growth(host, peak_bytes()), growth(memory, taken_bytes(device))
    stage("comparing")
    expected = _load(task.folder / _EXPECTED, known.outputs)
    return Figures(
        session.spec.provider,
        load_s,
        first_run_s,
        run_s,
        session.live_nodes,
        session.total_nodes,
        worst(difference(expected, as_arrays(outputs)) for outputs in (first, last)),
        host_bytes,
        device_bytes,
    )


def _timed_runs(
    device: Device, model: OnnxModel, feeds: Mapping[str, Any], most: int, seconds: float
) -> tuple[tuple[float, ...], dict[str, Any]]:
    """Return the times of at least one run, in seconds, and the outputs of the last one."""
    times: list[float] = []
    outputs: dict[str, Any] = {}
    end = time.perf_counter() + seconds
    while not times or (len(times) < most and time.perf_counter() < end):
        start = time.perf_counter()
        outputs = device.compute(model, feeds)
        times.append(time.perf_counter() - start)
    return tuple(times), outputs


def _reason(error: DeviceCoreError) -> str:
    return str(getattr(error, "reason", error))


def _save(file: Path, arrays: Mapping[str, Any]) -> None:
    plain = [each.astype(str) if each.dtype.kind == "O" else each for each in arrays.values()]
    np.savez(file, *plain)  # by number: a name may be any text


def _load(file: Path, names: Any, texts: type = str) -> dict[str, Any]:
    with np.load(file) as archive:
        arrays = [archive[f"arr_{index}"] for index in range(len(names))]
    plain = [each.astype(texts) if each.dtype.kind == "U" else each for each in arrays]
    return dict(zip(names, plain, strict=True))
