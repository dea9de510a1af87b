"""Operators that ONNX Runtime does not have: libraries that bring them, and what to do without."""

from __future__ import annotations

import re
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from devicecore.errors import ModelError
from devicecore.errors.base import listing
from devicecore.ort.model_operators import operators
from devicecore.ort.spec import CPU_PROVIDER
from devicecore.ort.tiny_model import one_node_model

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_SILENT = 4  # only fatal messages
_MOST = 256

_UNKNOWN = (
    re.compile(r"Fatal error: (?P<domain>[^\s:]*):(?P<op>[^\s(]+)\(-?\d+\) is not a registered"),
    re.compile(
        r'In Node, \("[^"]*", (?P<op>[^,]+), "(?P<domain>[^"]*)", .*'
        r"(?:No Op registered for|No opset import for domain|is not a registered function)"
    ),
)
_STANDARD = frozenset({"", "ai.onnx", "ai.onnx.ml", "ai.onnx.training", "ai.onnx.preview.training"})
_OF_ONNXRUNTIME = frozenset(
    {"com.microsoft", "com.microsoft.nchwc", "com.microsoft.experimental", "com.ms.internal.nhwc"}
)
_EXTENSIONS = frozenset({"com.microsoft.extensions", "ai.onnx.contrib"})


def register_libraries(options: Any, libraries: Iterable[str], model: str) -> None:
    """Register the operators of *libraries* in *options*, ONNX Runtime's ``SessionOptions``.

    Raises:
        ModelError: One cannot be loaded, or holds no operators.
    """
    for library in libraries:
        try:
            options.register_custom_ops_library(library)
        except Exception as error:  # its errors share no other base
            if Path(library).is_dir():
                reason, fix = "it is a folder", "give the path of the library inside it"
            elif not Path(library).is_file():
                reason, fix = "there is no such file", "give the library's full path"
            elif "RegisterCustomOps" in str(error):
                reason, fix = "it registers none", "give the library that has RegisterCustomOps"
            else:
                reason = f"it cannot be loaded ({str(error).rpartition('error: ')[2]})"
                fix = "give one that was built for this system and this onnxruntime"
            reason = f"its operators are not in {library!r}: {reason}"
            raise ModelError(model, reason, fix) from error


def further_faults(ort: Any, model: bytes | str, libraries: Iterable[str], text: str) -> list[str]:
    """Return what ONNX Runtime says of each operator of *model* that it lacks; it stops at one.

    Empty where *text*, what it said of the model, is of no such operator. Each is looked for in a
    model of its own, with the operators of *libraries*.
    """
    if _unknown(text) is None:
        return []
    options = ort.SessionOptions()
    options.log_severity_level = _SILENT
    register_libraries(options, libraries, "")
    said = []
    for (domain, op), version in islice(operators(model).items(), _MOST):
        try:
            ort.InferenceSession(
                one_node_model(op, domain, version), options, providers=[CPU_PROVIDER]
            )
        except Exception as error:  # noqa: BLE001 - its errors share no other base
            said.append(str(error))
    return said


def unknown_operators(model: str, texts: Iterable[str]) -> ModelError | None:
    """Return the error to raise where ONNX Runtime says in *texts* that it lacks operators."""
    faults: dict[tuple[str, str], dict[str, list[str]]] = {}
    for domain, op, is_imported in dict.fromkeys(filter(None, map(_unknown, texts))):
        fault = _fault(domain, is_imported=is_imported)
        faults.setdefault(fault, {}).setdefault(domain, []).append(op)
    if not faults:
        return None
    reasons = [reason.format(_listed(ops)) for (reason, _), ops in faults.items()]
    fixes = dict.fromkeys(fix for _, fix in faults)
    return ModelError(model, ", and ".join(reasons), "; ".join(fixes))


def _unknown(text: str) -> tuple[str, str, bool] | None:
    """Return the operator that *text* is about, its domain first, and whether that is imported."""
    found = next(filter(None, (pattern.search(text) for pattern in _UNKNOWN)), None)
    return found and (found["domain"], found["op"], "No opset import" not in text)


def _listed(operators: Mapping[str, list[str]]) -> str:
    """Return the names of *operators*, by their domains, as they stand in a sentence."""
    single = sum(map(len, operators.values())) == 1
    parts = []
    for domain, ops in operators.items():
        of = " of " if domain in _STANDARD else " of the domain "
        parts.append(listing(map(repr, ops)) + (f"{of}{domain!r}" if domain else ""))
    return f"operator{'' if single else 's'} {' and '.join(parts)}"


def _fault(domain: str, *, is_imported: bool) -> tuple[str, str]:
    """Return a reason, with a place for operators of *domain*, and the fix."""
    if not is_imported:
        reason = "it uses the {}, whose version it does not import"
        return reason, "export it again, with an opset import for that domain"
    if domain in _STANDARD:
        reason = "this onnxruntime has no {} in the opset that it imports"
        fix = "pip install --upgrade onnxruntime, or export the model with operators of ONNX"
        return reason, fix
    return "nobody registered its {}", _fix(domain)


def _fix(domain: str) -> str:
    if domain in _OF_ONNXRUNTIME:
        return "pip install --upgrade onnxruntime, or the build that the model was made for"
    if domain in _EXTENSIONS:
        return (
            "pip install onnxruntime-extensions, and give OnnxModel("
            "custom_op_libraries=[onnxruntime_extensions.get_library_path()])"
        )
    return (
        "give the library that has it: OnnxModel(custom_op_libraries=[path]), or "
        "register_custom_ops_library of ONNX Runtime's SessionOptions"
    )
