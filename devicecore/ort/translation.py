"""ONNX Runtime's errors as ours: its classes share no base, and their texts say what happened."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from devicecore.errors import DeviceCoreError, ModelError, NotLiveError, OutOfMemoryError
from devicecore.ort.spec import CPU_PROVIDER

if TYPE_CHECKING:
    from collections.abc import Sequence

    from devicecore.ort.spec import SessionSpec

_CODE = re.compile(r"^.*\[ONNXRuntimeError\] : \d+ : \w+ : ")
_PLACE = re.compile(r"^/\S+\.(?:cc|cpp|h):\d+ (?:.* was false\. |[^()]*\(.*?\) )(?=\S)")
_OUT_OF_MEMORY = re.compile(
    r"out of memory|OUT_OF_MEMORY|Failed to allocate memory|bad_alloc|ALLOC_FAILED", re.IGNORECASE
)
_TOO_NEW = re.compile(r"opset \d+ is under development|Unsupported model IR version", re.IGNORECASE)
# Classes that speak of the file, whatever provider it was meant for.
_OF_THE_MODEL = frozenset({"InvalidGraph", "NoSuchFile", "NoModel"})


def message_of(error: BaseException) -> str:
    """Return what *error* says, in one line, without codes and places in ONNX Runtime's source."""
    text = " ".join(str(error).split())
    return _PLACE.sub("", _CODE.sub("", text))


def opening_error(
    error: BaseException, model: str, spec: SessionSpec, log: Sequence[str] = ()
) -> DeviceCoreError:
    """Return the error to raise where a session of *model* could not be opened.

    Args:
        error: What ONNX Runtime raised.
        model: The model, for the message.
        spec: How it was to be opened.
        log: What ONNX Runtime said meanwhile.
    """
    text = message_of(error)
    if _OUT_OF_MEMORY.search(text):
        return OutOfMemoryError(spec.provider, text)
    if _TOO_NEW.search(text):
        return ModelError(model, f"it is too new ({text})", "pip install --upgrade onnxruntime")
    if type(error).__name__ == "InvalidProtobuf":
        return ModelError(model, "it is no ONNX model, or cut short", "copy or download it again")
    if type(error).__name__ in _OF_THE_MODEL or spec.provider == CPU_PROVIDER:
        return ModelError(model, text)
    said = [line for line in log if line not in text]
    return NotLiveError(spec.provider, "broken", " | ".join([text, *said]))


def running_error(error: BaseException, model: str, spec: SessionSpec) -> DeviceCoreError:
    """Return the error to raise where a run of *model* failed, inputs being as it declares them."""
    text = message_of(error)
    if _OUT_OF_MEMORY.search(text):
        return OutOfMemoryError(spec.provider, text)
    if type(error).__name__ == "InvalidArgument" or spec.provider == CPU_PROVIDER:
        return ModelError(model, text, "check the values of its inputs")
    return NotLiveError(spec.provider, "broken", text)
