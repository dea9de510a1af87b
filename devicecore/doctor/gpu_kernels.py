"""Builds that have no kernels for the GPU at hand: everything loads, and the first run fails."""

from __future__ import annotations

import mmap
import re
from typing import TYPE_CHECKING

from devicecore.doctor.diagnosis import Finding
from devicecore.ort import ort_package, provider_library

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from devicecore.device_factory import Candidate
    from devicecore.doctor.case import Case

_NO_KERNEL = re.compile(r"no kernel image|no_binary_for_gpu|invalid device function", re.IGNORECASE)
# As the compiler notes it beside each kernel; other mentions are names of kernels only.
_ARCHITECTURE = re.compile(rb"-arch sm_(\d{2,3})[af]? -m ")
_FIXES = {
    "torch": "pip install --upgrade torch",
    "onnx": "pip install --upgrade onnxruntime-gpu",
}


def find(case: Case) -> Iterator[Finding]:
    """Yield the GPUs that a framework's build has no kernels for; ``--deep`` must have run."""
    for candidate in case.candidates:
        for framework, answer in candidate.liveness.frameworks.items():
            text = f"{answer.reason}\n{answer.detail}"
            if found := _NO_KERNEL.search(text):
                line = next(part for part in text.splitlines() if found[0] in part)
                device_type = candidate.registration.device_type
                yield Finding(
                    "no-kernel-for-this-gpu",
                    f"the build that {framework} uses has no kernels for this GPU",
                    "; ".join([f"{device_type}: {line.strip()}", *_gpu(candidate, framework)]),
                    _FIXES.get(framework, ""),
                )


def _gpu(candidate: Candidate, framework: str) -> Iterator[str]:
    for gpu in candidate.liveness.devices:
        if capability := gpu.details.get("compute_capability"):
            yield f"{gpu.description or gpu.device_type} has compute capability {capability}"
    library = provider_library("CUDAExecutionProvider") if framework == "onnx" else None
    package = ort_package()
    if library and package and (found := architectures(library)):
        yield f"{package.name} has kernels for {', '.join(found)}"


def architectures(library: Path) -> tuple[str, ...]:
    """Return the compute capabilities that *library* names, such as ``"9.0"``, in order."""
    with library.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        numbers = sorted({int(match[1]) for match in _ARCHITECTURE.finditer(data)})
    return tuple(f"{number // 10}.{number % 10}" for number in numbers)
