"""What a diagnosis is, and how all of them are made."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from attrs import field, frozen

from devicecore.errors import without_pip

if TYPE_CHECKING:
    from devicecore.doctor.case import Case

# One module each, with a function `find(case) -> Iterator[Finding]`.
_DIAGNOSES = (
    "packages",
    "onnxruntime_packages",
    "silent_cpu_fallback",
    "missing_libraries",
    "unloaded_libraries",
    "tensorrt_libraries",
    "gpu_kernels",
    "renamed_provider",
    "option_dialect",
    "conv_search",
    "engine_cache",
    "reduced_precision",
    "thread_limits",
    "opencv",
    "torch_companions",
)


@frozen
class Finding:
    """Something that is wrong, or that a person will wonder about.

    Attributes:
        name: The diagnosis, such as ``"silent-cpu-fallback"``.
        problem: What is wrong, in one line.
        evidence: What was seen.
        fix: What to do, as a command or a line of a program where there is one.
        is_advice: Whether nothing is wrong: something to know, for programs without devicecore.
    """

    name: str
    problem: str
    evidence: str
    fix: str = field(converter=without_pip)
    is_advice: bool = False


def diagnose(case: Case) -> list[Finding]:
    """Make all diagnoses of *case*; no framework is imported and nothing is installed for it."""
    modules = (import_module(f"devicecore.doctor.{name}") for name in _DIAGNOSES)
    return [finding for module in modules for finding in module.find(case)]
