"""What the errors of torch, ONNX Runtime and their drivers mean for the device they came from."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from devicecore.errors import (
    DeviceCoreError,
    DeviceError,
    DeviceGoneError,
    NotLiveError,
    OutOfMemoryError,
    shorten,
)

if TYPE_CHECKING:
    from devicecore.device import Device

_OUT_OF_MEMORY = re.compile(
    r"\b(CUDA|HIP|XPU|MPS|Metal)\b[^\n]{0,80}\bout of memory"
    r"|\b(CU|HIP|ROC|MIOPEN)[A-Z]*_\w*ALLOC(ATION)?_FAILED|\bmiopenStatusAllocFailed"
    r"|^Allocation is out of device memory|DefaultCPUAllocator: (can't allocate|not enough) memory"
    r"|\brocblas_status_memory_error|\b(hip|cuda)Error(OutOfMemory|MemoryAllocation)"
    # Level Zero, and SYCL's Unified Runtime and Plugin Interface over it or over OpenCL.
    r"|\b(UR_RESULT_ERROR|ZE_RESULT_ERROR|PI_ERROR|CL)_"
    r"(OUT_OF_\w*MEMORY|OUT_OF_RESOURCES|MEM_OBJECT_ALLOCATION_FAILURE)"
    r"|\bHSA_STATUS_ERROR_OUT_OF_RESOURCES"
    # Metal has buffers up to a certain size only.
    r"|^Invalid buffer size: [\d.]+ [KMGT]i?B\b|CommandBufferCallbackErrorOutOfMemory",
    re.IGNORECASE,
)
_DRIVER = re.compile(
    r"\b(CUDA|HIP|XPU|SYCL|MPS|Metal|WebGPU|Level.Zero|MIOpen|rocBLAS|hipBLAS(Lt)?)\b"
    r"|\b(UR_RESULT|ZE_RESULT|PI|VK|DXGI)_ERROR_|\b(hip|cuda)Error[A-Z]|CommandBufferCallbackError",
    re.IGNORECASE,
)
# After one of these the context refuses all further work, so the card is lost to this process.
_LOST = re.compile(
    r"illegal memory access|unspecified launch failure|device-side assert|misaligned address"
    r"|illegal instruction|invalid program counter|hardware stack error|uncorrectable (ECC|NVLink)"
    r"|(CUDA|HIP) error: unknown error|context is destroyed"
    r"|GPU is lost|fallen off the bus|device.lost|launch timed out"
    r"|(hip|cuda)Error(IllegalAddress|LaunchFailure|LaunchTimeOut|Assert|ECCNotCorrectable)"
    r"|(UR_RESULT_ERROR|ZE_RESULT_ERROR|PI_ERROR)_DEVICE_(LOST|NOT_AVAILABLE|REQUIRES_RESET)"
    r"|DXGI_ERROR_DEVICE_(REMOVED|HUNG|RESET)|CallbackError(SubmissionsIgnored|Hang|Timeout)"
    r"|(CUDA|HIP) failure (700|702|710|719|999)\b",
    re.IGNORECASE,
)
_FORKED = re.compile(r"re-initialize \w+ in forked subprocess", re.IGNORECASE)
_NO_DRIVER = re.compile(
    r"Found no NVIDIA driver|driver on your system is too old|driver initialization failed"
    r"|No (CUDA|HIP|XPU) (GPUs|devices) are available|no \w+-capable device"
    r"|CUDA driver version is insufficient|CUDA unknown error"
    r"|(CUDA|HIP|ROCm)-capable device(s|\(s\))? (is/are|are|is) busy or unavailable"
    r"|(UR_RESULT_ERROR|ZE_RESULT_ERROR|PI_ERROR)_(UNINITIALIZED|DEVICE_NOT_FOUND|UNKNOWN)\b"
    r"|\b(hip|cuda)Error(NoDevice|InvalidDevice|InsufficientDriver)\b",
    re.IGNORECASE,
)
_NO_IMAGE = re.compile(
    r"no kernel image is available|(CUDA|HIP) error: invalid device function"
    r"|device kernel image is invalid|PTX was compiled with an unsupported toolchain"
    r"|hipError(InvalidDeviceFunction|NoBinaryForGpu)|(HIPBLAS|CUBLAS)_STATUS_ARCH_MISMATCH"
    r"|rocblas_status_arch_mismatch|TensileLibrary|initialize Tensile|Code object build failed"
    r"|(UR_RESULT_ERROR|ZE_RESULT_ERROR|PI_ERROR)_(INVALID_BINARY|INVALID_NATIVE_BINARY)",
    re.IGNORECASE,
)
# What a library of the card's maker cannot do there. A wrong argument is the program's.
_NO_LIBRARY = re.compile(
    r"\b(CUBLAS|CUDNN|HIPBLAS)_STATUS_"
    r"(NOT_INITIALIZED|INTERNAL_ERROR|EXECUTION_FAILED|MAPPING_ERROR|NOT_SUPPORTED|UNKNOWN)"
    r"|\bmiopenStatus(UnknownError|InternalError|NotInitialized|NotImplemented|GpuOperationsSkipped)"
    r"|\brocblas_status_(internal_error|not_implemented|invalid_handle)"
    r"|\b(MIOpen|rocBLAS|hipBLASLt) error\b|\b(CU|HIP)FFT_(EXEC_FAILED|INTERNAL_ERROR)",
    re.IGNORECASE,
)


def device_error(device: Device, error: Exception) -> DeviceError | None:
    """Return what *error* means for *device*; None if it is no matter of the device.

    A lost card takes its devices along.
    """
    if isinstance(error, OutOfMemoryError):
        # ONNX Runtime knows its provider, not our device.
        return None if error.device == device.name else OutOfMemoryError(device.name, error.detail)
    ours = isinstance(error, DeviceCoreError) and not isinstance(error, NotLiveError)
    if ours or not isinstance(error, RuntimeError):
        return None
    return _judged(device, error, str(error))


def _judged(device: Device, error: RuntimeError, text: str) -> DeviceError | None:
    if type(error).__name__ == "OutOfMemoryError" or _OUT_OF_MEMORY.search(text):
        return OutOfMemoryError(device.name, first_line(error))
    if _FORKED.search(text):
        return DeviceGoneError(device.name, "it was opened before this process was forked")
    if _NO_IMAGE.search(text):
        reason = "it has no kernel for this card"
        return NotLiveError(device.name, "broken", reason, "install a build that has")
    if _DRIVER.search(text) and _LOST.search(text):
        return lost(device, error)
    if _NO_DRIVER.search(text) or _NO_LIBRARY.search(text):
        return NotLiveError(device.name, "broken", first_line(error))
    return None


def lost(device: Device, error: Exception) -> DeviceGoneError:
    """Take *device* and all others on its card out of use, and return the error that says so."""
    reason = first_line(error)
    if device.device_class == "CPU":  # the host itself does not go with it
        device.retire(reason)
    else:
        device.lose(reason)
    return DeviceGoneError(device.name, reason)


def first_line(error: BaseException) -> str:
    """Return the first line of what *error* says; torch's advice on debugging comes after it."""
    lines = str(error).strip().splitlines()
    return shorten(lines[0], 300) if lines else type(error).__name__
