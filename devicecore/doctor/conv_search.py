"""CUDA convolutions whose algorithm ONNX Runtime chooses anew, or badly, for changing shapes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from devicecore.doctor.diagnosis import Finding

if TYPE_CHECKING:
    from collections.abc import Iterator

    from devicecore.doctor.case import Case

_OPTION = "cudnn_conv_algo_search"
_UNSET = "EXHAUSTIVE"
_ADVICE = "pad inputs to a few sizes, with a session for each: any change of shape plans anew"

# Measured with ONNX Runtime 1.31 on an H200 (benchmarks/gpu/conv_search.py): a shape that differs
# from the call before is planned anew, seen or not. HEURISTIC plans 1.8 to 6.6 times faster than
# EXHAUSTIVE and runs as fast; DEFAULT plans fastest, and then runs up to 20 times slower.
_SEARCHES = {
    "EXHAUSTIVE": (
        "each change of the input shape searches all algorithms, for longer than the run itself",
        f'"{_OPTION}": "HEURISTIC" searches less and runs as fast; {_ADVICE}',
    ),
    "DEFAULT": (
        "convolutions run in cuDNN's fallback mode, up to 20 times slower while the shape stays",
        f'"{_OPTION}": "HEURISTIC" unless nearly every call has another shape; {_ADVICE}',
    ),
}


def find(case: Case) -> Iterator[Finding]:
    """Yield the CUDA sessions of convolutional models with open shapes whose search costs time."""
    for session in case.sessions:
        trial = session.trial
        search = session.options.get(_OPTION, _UNSET).upper()
        if session.provider != "CUDAExecutionProvider" or trial is None:
            continue
        if search not in _SEARCHES or not trial.open_inputs:
            continue
        if any("Conv" in operator for operator in trial.operators):
            problem, fix = _SEARCHES[search]
            origin = "as asked" if _OPTION in session.options else "its default"
            yield Finding(
                "conv-search-on-dynamic-shapes",
                problem,
                f"{session.title} has convolutions and open shapes, {', '.join(trial.open_inputs)};"
                f" {_OPTION} is {search}, {origin}",
                fix,
            )
