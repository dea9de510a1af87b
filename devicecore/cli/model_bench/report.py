"""What was measured, as tables for a person and as data for a program."""

from __future__ import annotations

import math
from statistics import median
from typing import TYPE_CHECKING, Any

from devicecore.cli.model_bench.values import TOLERANCE, TOLERANCE_ABSOLUTE
from devicecore.cli.table import heading, print_table, wrapped

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import TextIO

    from devicecore.cli.model_bench.values import DeviceResult, Figures, Given, Reference, Task

_TIMES = ("", "load", "first run", "median", "p99", "runs")
_ANSWERS = ("", "nodes", "largest error", "of the largest", "agrees", "host", "device")
_MEBI = 1 << 20


def fastest(results: Sequence[DeviceResult]) -> DeviceResult | None:
    """Return the device with the least median among those whose answer is the CPU's."""
    times = [
        (median(each.figures.run_s), index)
        for index, each in enumerate(results)
        if each.figures and each.figures.difference.agrees
    ]
    return results[min(times)[1]] if times else None


def percentile_99(times: Sequence[float]) -> float:
    """Return the time that 99 of 100 runs do not exceed; of fewer runs, that of the slowest."""
    return sorted(times)[math.ceil(0.99 * len(times)) - 1]


def print_report(
    task: Task, known: Reference, results: Sequence[DeviceResult], out: TextIO
) -> None:
    """Print the inputs, a line for each device, and which one is the fastest."""
    heading(f"{task.model.name}, precision {task.precision}", out)
    print_table([_input(each) for each in known.inputs], out)
    ran = [(each, each.figures) for each in results if each.figures]
    if ran:
        heading("times in ms", out)
        print_table([_TIMES, *(_times(each.short, figures) for each, figures in ran)], out)
        heading("answers against those of the CPU in float32, memory in MiB", out)
        print_table([_ANSWERS, *(_answers(each.short, figures) for each, figures in ran)], out)
    if failed := [each for each in results if not each.figures]:
        heading("could not run it", out)
        print_table([(each.short, each.error) for each in failed], out)
    for line in (*_notes(known, [figures for _, figures in ran]), _conclusion(results)):
        print("\n".join(wrapped(line, 0)), file=out)


def as_data(task: Task, known: Reference, results: Sequence[DeviceResult]) -> dict[str, Any]:
    """Return all values as plain data; the units are in the names."""
    best = fastest(results)
    return {
        "model": str(task.model),
        "precision": task.precision,
        "cache": task.cache,
        "tolerance_relative": TOLERANCE,
        "tolerance_absolute": TOLERANCE_ABSOLUTE,
        "inputs": [
            {
                "name": each.name,
                "dtype": each.dtype,
                "shape": list(each.shape),
                "chosen_axes": list(each.chosen),
            }
            for each in known.inputs
        ],
        "reference_has_nan": known.has_nan,
        "devices": [_result_as_data(each) for each in results],
        "fastest": best.device if best else None,
    }


def _result_as_data(result: DeviceResult) -> dict[str, Any]:
    return {
        "name": result.device,
        "description": result.description,
        "error": result.error,
        **(_figures_as_data(result.figures) if result.figures else {}),
    }


def _figures_as_data(figures: Figures) -> dict[str, Any]:
    difference = figures.difference
    return {
        "provider": figures.provider,
        "load_ms": figures.load_s * 1e3,
        "first_run_ms": figures.first_run_s * 1e3,
        "median_ms": median(figures.run_s) * 1e3,
        "p99_ms": percentile_99(figures.run_s) * 1e3,
        "runs": len(figures.run_s),
        "live_nodes": figures.live_nodes,
        "total_nodes": figures.total_nodes,
        "max_error_absolute": difference.absolute,
        "max_error_relative": difference.relative,
        "fault": difference.fault,
        "agrees": difference.agrees,
        "host_memory_bytes": figures.host_bytes,
        "device_memory_bytes": figures.device_bytes,
    }


def _input(given: Given) -> tuple[str, str, str]:
    sizes = [
        f"{size}*" if axis in given.chosen else str(size) for axis, size in enumerate(given.shape)
    ]
    return given.name, given.dtype, f"[{', '.join(sizes)}]"


def _times(name: str, figures: Figures) -> tuple[str, ...]:
    return (
        name,
        _milliseconds(figures.load_s),
        _milliseconds(figures.first_run_s),
        _milliseconds(median(figures.run_s)),
        _milliseconds(percentile_99(figures.run_s)),
        str(len(figures.run_s)),
    )


def _answers(name: str, figures: Figures) -> tuple[str, ...]:
    difference = figures.difference
    return (
        name,
        f"{figures.live_nodes}/{figures.total_nodes}",
        difference.fault or _error(difference.absolute),
        _error(difference.relative),
        "yes" if difference.agrees else "NO",
        _mebibytes(figures.host_bytes),
        _mebibytes(figures.device_bytes),
    )


def _milliseconds(seconds: float) -> str:
    """Return *seconds* in ms, with the digits that a measurement can be sure of."""
    value = seconds * 1e3
    if value >= 100:  # noqa: PLR2004 - three digits, or two after zeros
        return f"{value:.0f}"
    return f"{value:.3g}" if value >= 1 else f"{value:.2g}"


def _error(value: float | None) -> str:
    return "-" if value is None else f"{value:.1e}" if value else "0"


def _mebibytes(amount: int | None) -> str:
    return "-" if amount is None else f"{amount / _MEBI:.0f}"


def _notes(known: Reference, ran: Sequence[Figures]) -> list[str]:
    notes = []
    if any(each.chosen for each in known.inputs):
        notes.append("* the model leaves this size open, and it was chosen here; see --shape")
    if any(not each.difference.agrees for each in ran):
        notes.append(
            f"NO: the answer is off by more than {TOLERANCE:g} of the largest value, or cannot be "
            "compared"
        )
    if known.has_nan:
        notes.append(
            "the CPU's own answer has NaN: these inputs do not suit the model; see --inputs"
        )
    return notes


def _conclusion(results: Sequence[DeviceResult]) -> str:
    best = fastest(results)
    if best is None or best.figures is None:
        return "no device gave the CPU's answer"
    time = f"{_milliseconds(median(best.figures.run_s))} ms"
    return f"fastest of those that give the CPU's answer: {best.short}, {time}"
