"""ONNX's conformance suite, run case by case, with the reason for each that does not pass."""

from __future__ import annotations

import re
import time
import warnings
from typing import TYPE_CHECKING, Any, Literal
from unittest import SkipTest

from attrs import field, frozen
from onnx.backend.test.runner import Runner

from devicecore.errors import ModelError, NotLiveError, OutOfMemoryError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from onnx.backend.base import Backend

_OF_THE_CPU = "_cpu"
# What an error says, by the first words that fit, in a few words of ours.
_REASONS = (
    (Exception, "is not a registered function/op", "unknown operator"),
    (ModelError, "its operator '", "unknown operator"),
    (ModelError, "has no operator '", "unknown operator"),
    (ModelError, "it is too new", "model too new"),
    (ModelError, "", "model refused"),
    (NotLiveError, "", "provider failed"),
    (OutOfMemoryError, "", "out of memory"),
    (AssertionError, "incorrect shape", "other shape"),
    (AssertionError, "Not equal to tolerance", "other values"),
    (AssertionError, "Arrays are not equal", "other values"),
    (AssertionError, "Items are not equal", "other type"),
    (AssertionError, "Unexpected type", "other type"),
)


@frozen
class CaseResult:
    """What became of one case of the suite.

    Attributes:
        name: The case, such as ``"test_add"``.
        outcome: ``"passed"``, ``"skipped"`` where there is no kernel for it, or ``"failed"``.
        reason: Why it did not pass, in two or three words that are the same for many.
        detail: What was said.
        nodes: How many nodes of its model each provider took; empty if that is not known.
        seconds: How long it took.
    """

    name: str
    outcome: Literal["passed", "skipped", "failed"]
    reason: str = ""
    detail: str = ""
    nodes: Mapping[str, int] = field(factory=dict)
    seconds: float = 0.0


def run_onnx_suite(backend: type[Backend], *, names: str = "") -> Iterator[CaseResult]:
    """Run ONNX's conformance suite on *backend*, one case after the other.

    The suite keeps its larger models in the folder that the variable ``ONNX_MODELS`` names.

    Args:
        backend: A class such as one derived from `OnnxBackend`; it is asked for ``"CPU"``.
        names: A regular expression that the name of a case must fit; all if empty.
    """
    opened: list[Any] = []

    class Watched(backend):  # type: ignore[misc, valid-type]  # a class that is not known before
        @classmethod
        def prepare(cls, model: Any, device: str = "CPU", **kwargs: Any) -> Any:
            made = super().prepare(model, device, **kwargs)
            opened.append(made)
            return made

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # making the cases overflows here and there
        cases = Runner(Watched).test_cases.values()
    for case in cases:
        for method in sorted(vars(case)):
            name = method.removesuffix(_OF_THE_CPU)
            if method != name and name.startswith("test_") and re.search(names, name):
                opened.clear()
                yield _run(name, getattr(case(method), method), opened)


def _run(name: str, run: Any, opened: list[Any]) -> CaseResult:
    began = time.perf_counter()
    outcome: Literal["passed", "skipped", "failed"] = "passed"
    reason = detail = ""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # comparing infinities does
            run()
    except SkipTest as error:
        outcome, reason, detail = "skipped", "no kernel", str(error)
    except Exception as error:  # noqa: BLE001 - whatever a backend raises, the case has failed
        outcome, reason, detail = "failed", _reason(error), f"{type(error).__name__}: {error}"
    nodes = getattr(opened[-1], "nodes", {}) if opened else {}
    seconds = time.perf_counter() - began
    return CaseResult(name, outcome, reason, detail, nodes, seconds)


def _reason(error: Exception) -> str:
    for kind, words, reason in _REASONS:
        if isinstance(error, kind) and words in str(error):
            return reason
    return type(error).__name__
