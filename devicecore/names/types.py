"""The device types, device classes and provider names that every devicecore knows."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

DEVICE_CLASSES: Final = frozenset({"CPU", "GPU", "NPU"})
"""Families of devices. ``CPU`` is also a type."""

DEVICE_TYPES: Final = frozenset(
    {"CPU", "CUDA", "TENSORRT", "COREML", "ROCM", "MPS", "XPU", "OPENVINO", "WEBGPU"}
)
"""The backends that come with devicecore. A registered type need not be among them."""

TYPES_TO_COME: Final[Mapping[str, str]] = MappingProxyType(
    {"DML": "DirectML", "QNN": "Qualcomm's QNN"}
)
"""Types that are known and explained, each with its title, and come with no factory."""

PROVIDER_TYPES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "CPUExecutionProvider": "CPU",
        "CUDAExecutionProvider": "CUDA",
        "TensorrtExecutionProvider": "TENSORRT",
        "NvTensorRTRTXExecutionProvider": "TENSORRT",
        "CoreMLExecutionProvider": "COREML",
        "MIGraphXExecutionProvider": "ROCM",
        "ROCMExecutionProvider": "ROCM",
        "OpenVINOExecutionProvider": "OPENVINO",
        "WebGpuExecutionProvider": "WEBGPU",
        "DmlExecutionProvider": "DML",
        "QNNExecutionProvider": "QNN",
    }
)
"""ONNX Runtime's provider names, each with the device type that it serves."""

FIXED_TYPES: Final = DEVICE_CLASSES | DEVICE_TYPES | TYPES_TO_COME.keys()


def canonical_type(text: str) -> str:
    """Return *text* in upper case if it is one of ours in any case, else as it is."""
    upper = text.upper()
    return upper if upper in FIXED_TYPES else text
