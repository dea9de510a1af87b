"""What the messages of drivers mean: texts that people have reported, and the errors they become.

The cards are not here; the texts are quoted from public bug reports of torch, ROCm, Intel's
runtimes and ONNX Runtime.
"""

from __future__ import annotations

from itertools import count
from typing import Any

import pytest

from devicecore.device import Device
from devicecore.errors import DeviceGoneError, NotLiveError, OutOfMemoryError
from devicecore.ort import SessionSpec
from devicecore.ort.translation import opening_error, running_error
from devicecore_factories import _faults

_cards = count()

OUT_OF_MEMORY = {
    "XPU": [
        "XPU out of memory. Tried to allocate 4.66 GiB. GPU 0 has a total capacity of 5.65 GiB",
        "Native API failed. Native API returns: 39 (UR_RESULT_ERROR_OUT_OF_DEVICE_MEMORY)",
        "UR backend failed. UR backend returns:40 (UR_RESULT_ERROR_OUT_OF_RESOURCES)",
        "level_zero backend failed with error: 40 (UR_RESULT_ERROR_OUT_OF_RESOURCES)",
        "level_zero backend failed with error: 38 (UR_RESULT_ERROR_OUT_OF_HOST_MEMORY)",
        (
            "Native API failed. Native API returns: -5 (PI_ERROR_OUT_OF_RESOURCES) -5"
            " (PI_ERROR_OUT_OF_RESOURCES)"
        ),
        "Native API failed. Native API returns: -5 (CL_OUT_OF_RESOURCES) -5 (CL_OUT_OF_RESOURCES)",
        "Native API failed. Native API returns: -4 (PI_ERROR_MEM_OBJECT_ALLOCATION_FAILURE)",
        "ZE_RESULT_ERROR_OUT_OF_DEVICE_MEMORY",
        "Allocation is out of device memory on current platform.",
    ],
    "ROCM": [
        "HIP out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 15.98 GiB",
        (
            "HIP error: out of memory\nHIP kernel errors might be asynchronously reported at some"
            " other API call, so the stacktrace below might be incorrect."
        ),
        "CUDA error: HIPBLAS_STATUS_ALLOC_FAILED when calling `hipblasCreate(handle)`",
        "rocblas_status_memory_error",
        "miopenStatusAllocFailed",
        "HIP failure 2: hipErrorOutOfMemory ; GPU=0",
        "HSA_STATUS_ERROR_OUT_OF_RESOURCES: The runtime failed to allocate the resources",
    ],
    "MPS": [
        (
            "MPS backend out of memory (MPS allocated: 5.56 GB, other allocations: 1.10 GB, max"
            " allowed: 6.80 GB). Tried to allocate 768.00 MB on private pool."
        ),
        "Invalid buffer size: 19.38 GiB",
        "Invalid buffer size: 9.75 GB",
        "Insufficient Memory (00000008:kIOGPUCommandBufferCallbackErrorOutOfMemory)",
    ],
    "CUDA": [
        "CUDA out of memory. Tried to allocate 2.00 GiB",
        "CUDA error: out of memory\nCUDA kernel errors might be asynchronously reported",
        "CUDA driver error: out of memory",
        "CUDA failure 2: out of memory ; GPU=0 ; hostname=egg ; expr=cudaMalloc((void**)&p, size);",
        "CUBLAS failure 3: CUBLAS_STATUS_ALLOC_FAILED ; GPU=0 ; expr=cublasCreate(&handle);",
        "cuDNN error: CUDNN_STATUS_ALLOC_FAILED",
        "cuDNN error: CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED",
        "cusolver error: CUSOLVER_STATUS_ALLOC_FAILED, when calling `cusolverDnCreate(handle)`",
        "cuFFT error: CUFFT_ALLOC_FAILED",
        "[enforce fail at alloc_cpu.cpp:118] err == 0. DefaultCPUAllocator: can't allocate memory:",
        "CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`",
    ],
}
LOST = {
    "XPU": [
        "level_zero backend failed with error: 20 (UR_RESULT_ERROR_DEVICE_LOST)",
        "UR backend failed. UR backend returns:20 (UR_RESULT_ERROR_DEVICE_LOST)",
        "Native API failed. Native API returns: -1 (PI_ERROR_DEVICE_NOT_AVAILABLE)",
        "ZE_RESULT_ERROR_DEVICE_LOST",
        "XPU error: device lost",
    ],
    "ROCM": [
        "HIP error: an illegal memory access was encountered",
        (
            "HIP error: unspecified launch failure\nFor debugging consider passing"
            " AMD_SERIALIZE_KERNEL=3"
        ),
        "HIP failure 719: unspecified launch failure ; GPU=0",
        "hipErrorLaunchFailure",
    ],
    "MPS": [
        (
            "Ignored (for causing prior/excessive GPU errors)"
            " (00000004:kIOGPUCommandBufferCallbackErrorSubmissionsIgnored)"
        ),
        "Caused GPU Hang Error (00000003:kIOGPUCommandBufferCallbackErrorHang)",
        "Caused GPU Timeout Error (00000002:kIOGPUCommandBufferCallbackErrorTimeout)",
    ],
    "CUDA": [
        "CUDA error: an illegal memory access was encountered",
        "CUDA error: device-side assert triggered\nCompile with `TORCH_USE_CUDA_DSA`",
        "CUDA error: unspecified launch failure",
        "CUDA error: uncorrectable ECC error encountered",
        "CUDA error: uncorrectable NVLink error detected during the execution",
        "CUDA error: the launch timed out and was terminated",
        "CUDA error: misaligned address",
        "CUDA error: unknown error",
        "CUDA failure 719: unspecified launch failure ; GPU=0 ; hostname=a ; expr=cudaMemcpy()",
    ],
    "WEBGPU": ["WebGPU device lost (2): vkQueueSubmit failed with VK_ERROR_DEVICE_LOST"],
}
NOT_LIVE = {
    "XPU": [
        "No XPU devices are available.",
        "Native API failed. Native API returns: -1102 (PI_ERROR_UNINITIALIZED) -1102",
        "Native API failed. Native API returns: -42 (PI_ERROR_INVALID_BINARY)",
        "level_zero backend failed with error: 2147483646 (UR_RESULT_ERROR_UNKNOWN)",
    ],
    "ROCM": [
        (
            "HIP error: invalid device function\nHIP kernel errors might be asynchronously reported"
            " at some other API call, so the stacktrace below might be incorrect."
        ),
        "HIP error: invalid device function\nSearch for `hipErrorInvalidDeviceFunction' in",
        "hipErrorNoBinaryForGpu: Unable to find code object for all current devices!",
        "No HIP GPUs are available",
        "HIP error: no ROCm-capable device is detected",
        "rocBLAS error: Cannot read /opt/rocm/lib/rocblas/library/TensileLibrary.dat: Illegal seek",
        "rocBLAS error: Could not initialize Tensile library",
        "miopenStatusUnknownError",
        "miopenStatusInternalError",
        (
            "MIOpen Error: /MIOpen/src/hipoc/hipoc_program.cpp:286: Code object build failed."
            " Source: MIOpenIm2d2Col.cl"
        ),
        "CUDA error: HIPBLAS_STATUS_NOT_SUPPORTED when calling `HIPBLAS_STATUS_NOT_SUPPORTED`",
        "CUDA error: HIPBLAS_STATUS_INTERNAL_ERROR when calling `hipblasLtMatmul(ltHandle, ...)`",
        "MIOPEN failure 7: miopenStatusUnknownError ; GPU=0",
        "ROCBLAS failure 6: rocblas_status_internal_error ; GPU=0",
        "hipErrorNoDevice",
        "HIP failure 101: hipErrorInvalidDevice ; GPU=0",
        "cuFFT error: HIPFFT_EXEC_FAILED",
    ],
    "CUDA": [
        "CUDA error: no kernel image is available for execution on the device",
        "CUDA error: invalid device function",
        "CUDA error: CUBLAS_STATUS_EXECUTION_FAILED when calling `cublasSgemm( handle, opa)`",
        "cuDNN error: CUDNN_STATUS_NOT_INITIALIZED",
        "cuDNN error: CUDNN_STATUS_EXECUTION_FAILED",
        "CUDNN failure 5000: CUDNN_STATUS_EXECUTION_FAILED ; GPU=0",
        "CUDA error: device kernel image is invalid",
        "CUDA error: the provided PTX was compiled with an unsupported toolchain.",
        "CUDA driver version is insufficient for CUDA runtime version",
        "CUDA error: all CUDA-capable devices are busy or unavailable",
        "CUDA error: CUDA-capable device(s) is/are busy or unavailable",
        "CUDA unknown error - this may be due to an incorrectly set up environment",
    ],
}
OF_THE_PROGRAM = [
    "The size of tensor a (3) must match the size of tensor b (4) at non-singleton dimension 0",
    "Input type (torch.xpu.FloatTensor) and weight type (torch.FloatTensor) should be the same",
    "Expected all tensors to be on the same device, but found at least two devices, xpu:0 and cpu!",
    "Placeholder storage has not been allocated on MPS device!",
    "CUDA error: CUBLAS_STATUS_INVALID_VALUE when calling `cublasSgemm( handle, opa)`",
    "Cannot convert a MPS Tensor to float64 dtype as the MPS framework doesn't support float64.",
    "miopenStatusBadParm",
    "the text says that the device is lost and that it is out of resources",
    "Invalid buffer size: the header says 3",
    "Error(s) in loading state_dict for Cuda: size mismatch\nit was written out of memory order",
    "the shop is out of memory cards",
    "hip and knee: the joint 'unspecified' has no limits",
    "the metal detector saw an unknown error in the mps file",
    "CUDA graphs must be captured on a non-default stream",
    "no image named 'kernel' is available",
    "assert failed: device-side table has 3 rows",
    "Failed to allocate 3 seats at table 4",
]


def cases(table: dict[str, list[str]]) -> list[Any]:
    return [
        pytest.param(kind, text, id=f"{kind} {number}")
        for kind, texts in table.items()
        for number, text in enumerate(texts)
    ]


def fault(kind: str, error: Exception) -> tuple[Device, Exception | None]:
    """Return a device of *kind* on a card of its own, and what *error* means for it."""
    device = Device(f"/device:{kind}:0", device_class="GPU", physical_id=f"fault-{next(_cards)}")
    return device, _faults.device_error(device, error)


@pytest.mark.parametrize(("kind", "text"), cases(OUT_OF_MEMORY))
def test_a_card_without_room_is_out_of_memory(kind: str, text: str) -> None:
    device, error = fault(kind, RuntimeError(text))
    assert isinstance(error, OutOfMemoryError)
    assert not device.gone


@pytest.mark.parametrize(("kind", "text"), cases(LOST))
def test_a_lost_card_is_gone(kind: str, text: str) -> None:
    device, error = fault(kind, RuntimeError(text))
    assert isinstance(error, DeviceGoneError)
    assert device.gone


@pytest.mark.parametrize(("kind", "text"), cases(NOT_LIVE))
def test_a_card_that_its_software_does_not_serve_is_not_live(kind: str, text: str) -> None:
    device, error = fault(kind, RuntimeError(text))
    assert isinstance(error, NotLiveError)
    assert error.state == "broken"
    assert not device.gone


@pytest.mark.parametrize("text", OF_THE_PROGRAM)
def test_what_a_program_does_wrong_is_no_fault_of_the_device(text: str) -> None:
    for kind in ("XPU", "ROCM", "MPS", "CUDA"):
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
    spec = SessionSpec("CUDAExecutionProvider")
    for judge in (running_error, opening_error):
        assert isinstance(judge(RuntimeError(text), "model.onnx", spec), OutOfMemoryError)
