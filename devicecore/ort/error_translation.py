"""ONNX Runtime's errors as ours: its classes share no base, and their texts say what happened."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from devicecore.errors import DeviceCoreError, ModelError, NotLiveError, OutOfMemoryError
from devicecore.ort.custom_operators import unknown_operators
from devicecore.ort.spec import CPU_PROVIDER

if TYPE_CHECKING:
    from collections.abc import Sequence

    from devicecore.ort.spec import SessionSpec

_CODE = re.compile(r"^.*\[ONNXRuntimeError\] : \d+ : \w+ : |^Error in execution: ")
_PLACE = re.compile(r"^/\S+\.(?:cc|cpp|h):\d+ (?:.* was false\. |[^()]*\(.*?\) )(?=\S)")
# What OpenVINO says stands after this mark, among the places of its source.
_OPENVINO = re.compile(r"^.*\[OpenVINO-EP\] |Exception from \S+: |(?<=failed) at \S+:\d+(?=: )")
_FUNCTION = re.compile(r"\b\w+\.cc:\d+ \w+ ")
_OUT_OF_MEMORY = re.compile(
    r"out of memory\b(?! of\b)|OUT_OF_(\w+_)?MEMORY"
    r"|Failed to allocate memory|bad_alloc|ALLOC(ATION)?_?FAILED"
    r"|smaller than requested bytes|amount of GPU memory \(\d+ bytes\) could not be allocated"
    r"|(CL|UR_RESULT_ERROR|ZE_RESULT_ERROR)_(OUT_OF_RESOURCES|MEM_OBJECT_ALLOCATION_FAILURE)"
    r"|ErrorOutOf(Device|Host)?Memory|MemoryAllocation\b|CallbackErrorOutOfMemory|rocblas_status_memory"
    r"|\bInsufficient Memory\b|Cuda failure( at|:)? ?2\b|Error Code \d+: OutOfMemory"
    r"|Exceeded max size of memory object|(can ?not|failed to) allocate \d+ bytes"
    r"|out of GPU resources"
    r"|DefaultCPUAllocator: (can't allocate|not enough) memory|8007000E|AllocFailed\b"
    r"|HSA_STATUS_ERROR_OUT_OF_RESOURCES",
    re.IGNORECASE,
)
# Two ways to be too new, each with the model's number and the runtime's.
_TOO_NEW = {
    "opset": re.compile(
        r"Opset (\d+) is under development.*?(?:till opset (\d+)|$)", re.IGNORECASE
    ),
    "IR version": re.compile(
        r"Unsupported model IR version: (\d+), max supported IR version: (\d+)"
    ),
}
_EXTERNAL = re.compile(
    r"External data|External initializer|external_data|cannot get file size", re.IGNORECASE
)
_OPTION = re.compile(
    r"unknown provider option|Invalid OpenVINO EP option|unknown option|Unsupported property",
    re.IGNORECASE,
)
_OF_THE_INPUTS = re.compile(r"invalid dimensions for input|Unexpected input data type|Invalid rank")
# Classes that speak of the file, whatever provider it was meant for.
_OF_THE_MODEL = frozenset({"InvalidGraph", "NoSuchFile", "NoModel"})


def message_of(error: BaseException) -> str:
    """Return what *error* says, in one line, without codes and places in ONNX Runtime's source."""
    return _plain(str(error))


def _plain(said: str) -> str:
    text = " ".join(said.split())
    return _OPENVINO.sub("", _FUNCTION.sub("", _PLACE.sub("", _CODE.sub("", text))))


def opening_error(
    error: BaseException,
    model: str,
    spec: SessionSpec,
    log: Sequence[str] = (),
    further: Sequence[str] = (),
) -> DeviceCoreError:
    """Return the error to raise where a session of *model* could not be opened.

    Args:
        error: What ONNX Runtime raised.
        model: The model, for the message.
        spec: How it was to be opened.
        log: What ONNX Runtime said meanwhile.
        further: What it says of further operators that it lacks.
    """
    text = message_of(error)
    if _OUT_OF_MEMORY.search(text):
        return OutOfMemoryError(spec.provider, text)
    said = str(error)
    if fault := unknown_operators(model, [said, *further]) or _fault_of_the_file(model, said):
        return fault
    if _OPTION.search(text):
        return ModelError(model, text, "leave the option out, or spell it as this version does")
    if type(error).__name__ == "InvalidProtobuf":
        return ModelError(model, "it is no ONNX model, or cut short", "copy or download it again")
    if type(error).__name__ in _OF_THE_MODEL or spec.provider == CPU_PROVIDER:
        return ModelError(model, text)
    lines = [line for line in map(_plain, log) if line not in text]
    return NotLiveError(spec.provider, "broken", " | ".join([text, *lines]))


def _fault_of_the_file(model: str, text: str) -> ModelError | None:
    """Return what is wrong with the file, where ONNX Runtime says so in *text*."""
    for what, pattern in _TOO_NEW.items():
        if found := pattern.search(text):
            most = f"up to {found[2]}" if found[2] else "older ones"
            reason = f"it is too new: it is of {what} {found[1]}, this onnxruntime takes {most}"
            fix = "pip install --upgrade onnxruntime, or export the model for an older version"
            return ModelError(model, reason, fix)
    if _EXTERNAL.search(text):
        where = "the folder of the model's file, or the working directory for bytes"
        reason = f"its weights in other files are missing, cut short or elsewhere ({_plain(text)})"
        return ModelError(model, reason, f"put them into {where}, without links that leave it")
    return None


def running_error(error: BaseException, model: str, spec: SessionSpec) -> DeviceCoreError:
    """Return the error to raise where a run of *model* failed, inputs being as it declares them."""
    text = message_of(error)
    if _OUT_OF_MEMORY.search(text):
        return OutOfMemoryError(spec.provider, text)
    # A bound run has the texts of a plain one, and no classes.
    of_the_inputs = type(error).__name__ == "InvalidArgument" or _OF_THE_INPUTS.search(text)
    if of_the_inputs or spec.provider == CPU_PROVIDER:
        return ModelError(model, text, "check the values of its inputs")
    return NotLiveError(spec.provider, "broken", text)
