"""What the messages of drivers mean: texts that people have reported, and the errors they become.

The GPUs are not here; the texts are quoted from public bug reports of torch, ROCm, Intel's
runtimes and ONNX Runtime.
"""

from __future__ import annotations

import json
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from devicecore.device import Device
from devicecore.errors import DeviceGoneError, NotLiveError, OutOfMemoryError
from devicecore.ort import SessionSpec
from devicecore.ort.error_translation import opening_error, running_error
from devicecore_factories import _faults

_gpus = count()

TEXTS = json.loads((Path(__file__).parents[1] / "data/fault_texts.json").read_text())
OUT_OF_MEMORY, LOST, NOT_LIVE = TEXTS["out of memory"], TEXTS["lost"], TEXTS["not live"]


def cases(table: dict[str, list[str]]) -> list[Any]:
    return [
        pytest.param(kind, text, id=f"{kind} {number}")
        for kind, texts in table.items()
        for number, text in enumerate(texts)
    ]


def fault(kind: str, error: Exception) -> tuple[Device, Exception | None]:
    """Return a device of *kind* on a GPU of its own, and what *error* means for it."""
    device = Device(f"/device:{kind}:0", device_class="GPU", physical_id=f"fault-{next(_gpus)}")
    return device, _faults.device_error(device, error)


@pytest.mark.parametrize(("kind", "text"), cases(OUT_OF_MEMORY))
def test_a_gpu_without_room_is_out_of_memory(kind: str, text: str) -> None:
    device, error = fault(kind, RuntimeError(text))
    assert isinstance(error, OutOfMemoryError)
    assert not device.gone


@pytest.mark.parametrize(("kind", "text"), cases(LOST))
def test_a_lost_gpu_is_gone(kind: str, text: str) -> None:
    device, error = fault(kind, RuntimeError(text))
    assert isinstance(error, DeviceGoneError)
    assert device.gone


@pytest.mark.parametrize(("kind", "text"), cases(NOT_LIVE))
def test_a_gpu_that_its_software_does_not_serve_is_not_live(kind: str, text: str) -> None:
    device, error = fault(kind, RuntimeError(text))
    assert isinstance(error, NotLiveError)
    assert error.state == "broken"
    assert not device.gone


@pytest.mark.parametrize("text", TEXTS["of the program"])
def test_what_a_program_does_wrong_is_no_fault_of_the_device(text: str) -> None:
    for kind in ("XPU", "ROCM", "MPS", "CUDA", "WEBGPU", "OPENVINO"):
        assert fault(kind, RuntimeError(text))[1] is None
    assert fault("XPU", ValueError("UR_RESULT_ERROR_DEVICE_LOST"))[1] is None


@pytest.mark.parametrize(
    "text",
    [
        (
            "[ONNXRuntimeError] : 6 : RUNTIME_EXCEPTION : Non-zero status code returned while"
            " running Conv node. Name:'c' Status Message: /onnxruntime_src/onnxruntime/core/"
            "framework/bfc_arena.cc:376 void* onnxruntime::BFCArena::AllocateRawInternal(size_t,"
            " bool) Failed to allocate memory for requested buffer of size 134217728"
        ),
        "bfc_arena.cc:342 Available memory of 1024 is smaller than requested bytes of 40000000",
        "CUDNN failure 4001: CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED ; GPU=0",
        "CUBLAS failure 3: CUBLAS_STATUS_ALLOC_FAILED ; GPU=0 ; expr=cublasCreate(&handle_);",
        "Requested amount of GPU memory (9663676416 bytes) could not be allocated.",
    ],
)
def test_onnx_runtime_without_room_is_out_of_memory(text: str) -> None:
    out_of_memory_of("CUDAExecutionProvider", text)


SESSIONS = {
    "TENSORRT": "TensorrtExecutionProvider",
    "OPENVINO": "OpenVINOExecutionProvider",
    "WEBGPU": "WebGpuExecutionProvider",
    "CUDA": "CUDAExecutionProvider",
    "ROCM": "MIGraphXExecutionProvider",
}


@pytest.mark.parametrize(("kind", "text"), cases({kind: OUT_OF_MEMORY[kind] for kind in SESSIONS}))
def test_a_session_without_room_is_out_of_memory(kind: str, text: str) -> None:
    out_of_memory_of(SESSIONS[kind], text)


@pytest.mark.parametrize(("kind", "text"), cases({kind: LOST.get(kind, []) for kind in SESSIONS}))
def test_a_session_on_a_lost_gpu_takes_the_device_along(kind: str, text: str) -> None:
    said = running_error(RuntimeError(text), "model.onnx", SessionSpec(SESSIONS[kind]))
    assert isinstance(said, NotLiveError)
    device, error = fault(kind, said)
    assert isinstance(error, DeviceGoneError)
    assert device.gone


def out_of_memory_of(provider: str, text: str) -> None:
    spec = SessionSpec(provider)
    for judge in (running_error, opening_error):
        assert isinstance(judge(RuntimeError(text), "model.onnx", spec), OutOfMemoryError)
