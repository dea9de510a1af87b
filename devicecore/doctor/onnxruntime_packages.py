"""Several builds of ONNX Runtime in one folder, or what is left after one of them was removed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from devicecore.doctor.diagnosis import Finding
from devicecore.ort.builds import build_fault

if TYPE_CHECKING:
    from collections.abc import Iterator

    from devicecore.doctor.case import Case


def find(case: Case) -> Iterator[Finding]:
    """Yield what is wrong with the folder that all builds of ONNX Runtime share."""
    del case
    if fault := build_fault():
        yield Finding("two-onnxruntime-packages", fault.problem, fault.evidence, fault.fix)
