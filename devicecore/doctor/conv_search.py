"""A search for the best convolution that is made anew for every shape."""

from __future__ import annotations

from typing import TYPE_CHECKING

from devicecore.doctor.diagnosis import Finding

if TYPE_CHECKING:
    from collections.abc import Iterator

    from devicecore.doctor.case import Case

_OPTION = "cudnn_conv_algo_search"
_DEFAULT = "EXHAUSTIVE"


def find(case: Case) -> Iterator[Finding]:
    """Yield the CUDA sessions of convolutional models with open shapes that search each time."""
    for session in case.sessions:
        trial = session.trial
        search = session.options.get(_OPTION, _DEFAULT).upper()
        if session.provider != "CUDAExecutionProvider" or search != _DEFAULT or trial is None:
            continue
        if trial.open_inputs and any("Conv" in operator for operator in trial.operators):
            how = "as asked" if _OPTION in session.options else "its default"
            yield Finding(
                "conv-search-on-dynamic-shapes",
                "each new input shape costs a search for the fastest convolution, often longer "
                "than the run itself",
                f"{session.title} has convolutions and open shapes, {', '.join(trial.open_inputs)};"
                f" {_OPTION} is {_DEFAULT}, {how}",
                f'providers=[("CUDAExecutionProvider", {{"{_OPTION}": "HEURISTIC"}})]',
            )
