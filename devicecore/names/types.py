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
        "cuda_ep": "CUDA",
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


PROVIDER_SUFFIX = "executionprovider"

ALIASES: Final[Mapping[str, str]] = MappingProxyType(
    {
        **{provider.casefold(): found for provider, found in PROVIDER_TYPES.items()},
        **{
            provider.casefold().removesuffix(PROVIDER_SUFFIX): found
            for provider, found in PROVIDER_TYPES.items()
        },
        "directml": "DML",
        "trt": "TENSORRT",
        "hip": "ROCM",
    }
)
"""Folded words that mean one type."""


def known_type(word: str) -> str | None:
    """Return the type or class that devicecore knows by *word*, in any case, or None.

    Examples:
        >>> known_type("cuda"), known_type("DmlExecutionProvider"), known_type("DirectML")
        ('CUDA', 'DML', 'DML')
    """
    upper = word.upper()
    return upper if upper in FIXED_TYPES else ALIASES.get(word.casefold())


def canonical_type(text: str) -> str:
    """Return the type or class of ours that *text* names in any case, else *text* as it is.

    Examples:
        >>> canonical_type("cuda"), canonical_type("MIGraphX"), canonical_type("Acme")
        ('CUDA', 'ROCM', 'Acme')
    """
    return known_type(text) or text
