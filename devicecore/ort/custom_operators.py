"""Operators that ONNX Runtime does not have: libraries that bring them, and what to do without."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from devicecore.errors import ModelError

if TYPE_CHECKING:
    from collections.abc import Iterable

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
            if not Path(library).is_file():
                reason, fix = "there is no such file", "give the library's full path"
            elif "RegisterCustomOps" in str(error):
                reason, fix = "it registers none", "give the library that has RegisterCustomOps"
            else:
                reason = f"it cannot be loaded ({str(error).rpartition('error: ')[2]})"
                fix = "give one that was built for this system and this onnxruntime"
            reason = f"its operators are not in {library!r}: {reason}"
            raise ModelError(model, reason, fix) from error


def unknown_operator(model: str, text: str) -> ModelError | None:
    """Return the error to raise where ONNX Runtime says in *text* that it lacks an operator."""
    found = next(filter(None, (pattern.search(text) for pattern in _UNKNOWN)), None)
    if found is None:
        return None
    op, domain = found["op"], found["domain"]
    if "No opset import" in text:
        reason = f"it uses {op!r} of the domain {domain!r}, whose version it does not import"
        return ModelError(model, reason, "export it again, with an opset import for that domain")
    if domain in _STANDARD:
        where = f"of {domain!r} " if domain else ""
        reason = f"this onnxruntime has no operator {op!r} {where}in the opset that it imports"
        fix = "pip install --upgrade onnxruntime, or export the model with operators of ONNX"
        return ModelError(model, reason, fix)
    reason = f"nobody registered its operator {op!r} of the domain {domain!r}"
    return ModelError(model, reason, _fix(domain))


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
