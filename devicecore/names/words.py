"""Words that people write for device types and frameworks: providers, products and vendors."""

from __future__ import annotations

import re
from difflib import get_close_matches
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from devicecore.names.foreign_words import foreign_word
from devicecore.names.types import (
    ALIASES,
    DEVICE_TYPES,
    FIXED_TYPES,
    PROVIDER_SUFFIX,
    PROVIDER_TYPES,
    TYPES_TO_COME,
    known_type,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_NEAR = 0.7  # so that no word of three letters is near another, as TPU and XPU are

VENDOR_TYPES: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "nvidia": ("CUDA", "TENSORRT"),
        "amd": ("ROCM",),
        "intel": ("OPENVINO", "XPU"),
        "apple": ("MPS", "COREML"),
        "microsoft": ("DML",),
        "qualcomm": ("QNN",),
        "geforce": ("CUDA", "TENSORRT"),
        "radeon": ("ROCM",),
        "metal": ("MPS",),
        "oneapi": ("XPU",),
        "snapdragon": ("QNN",),
        "ane": ("COREML",),
        "vulkan": ("WEBGPU",),
        "d3d12": ("WEBGPU", "DML"),
        "opencl": ("OPENVINO",),
    }
)
"""Folded words for makers and their products, each with the types for their hardware."""

_FRAMEWORKS: Final[Mapping[str, str]] = MappingProxyType(
    {"torch": "torch", "pytorch": "torch", "onnx": "onnx", "onnxruntime": "onnx", "ort": "onnx"}
)


def types_meant_by_vendor(word: str) -> tuple[str, ...]:
    """Return the types for the hardware of a maker or of its product; none for other words."""
    return VENDOR_TYPES.get(word.casefold(), ())


def why_unknown(word: str) -> str:
    """Return what there is to say of *word*, which means no type that can be asked; may be empty.

    Examples:
        >>> why_unknown("NVIDIA")
        "'NVIDIA' is a vendor's word; the types for it are CUDA and TENSORRT"
    """
    if types := VENDOR_TYPES.get(word.casefold()):
        plural = "types for it are" if len(types) > 1 else "type for it is"
        return f"{word!r} is a vendor's word; the {plural} {' and '.join(types)}"
    if (known := known_type(word)) is not None and known in TYPES_TO_COME:
        return f"devicecore knows {TYPES_TO_COME[known]}, but has no factory for it"
    if word.casefold().endswith(PROVIDER_SUFFIX):
        return f"unknown provider {word!r}; there are {', '.join(PROVIDER_TYPES)}"
    return foreign_word(word)


def near_types(word: str, types: Iterable[str] = ()) -> tuple[str, ...]:
    """Return the types that *word* may mean, the nearest first.

    Args:
        word: What was written.
        types: The types that are known here, beside those that every devicecore knows.

    Examples:
        >>> near_types("NVIDIA"), near_types("TensorRt_ExecutionProvider"), near_types("cudaa")
        (('CUDA', 'TENSORRT'), ('TENSORRT',), ('CUDA',))
    """
    folded = re.sub(r"_?(execution\w*|provider)$", "", word.casefold())
    words = {
        **{vendor: found for vendor, found in VENDOR_TYPES.items() if len(vendor) > len("amd")},
        **{
            alias: (found,)
            for alias, found in ALIASES.items()
            if not alias.endswith(PROVIDER_SUFFIX)
        },
        **{known.casefold(): (known,) for known in (*FIXED_TYPES, *types)},
    }
    if folded in VENDOR_TYPES:
        return VENDOR_TYPES[folded]
    if foreign_word(folded):
        return ()
    near = get_close_matches(folded, sorted(words), n=1, cutoff=_NEAR)
    return words[near[0]] if near else ()


def types_of_class(device_class: str) -> tuple[str, ...]:
    """Return those of our types whose devices are of a class, whatever the hardware is."""
    if device_class == "NPU":
        return ("COREML",)
    return () if device_class == "CPU" else tuple(sorted(DEVICE_TYPES - _OF_NO_GPU))


_OF_NO_GPU = frozenset({"CPU", "COREML", "OPENVINO"})


FRAMEWORKS: Final = frozenset(_FRAMEWORKS.values())
"""What a device can be live for."""


def canonical_framework(text: str) -> str:
    """Return the framework that *text* names in any case, or *text* where nobody knows it.

    Examples:
        >>> canonical_framework("PyTorch"), canonical_framework("ONNX"), canonical_framework("jax")
        ('torch', 'onnx', 'jax')
    """
    return _FRAMEWORKS.get(str(text).casefold(), text)


def meant_framework(text: str | None) -> str | None:
    """Return the framework that *text* names; None and texts that are no misspelt one as they are.

    Examples:
        >>> meant_framework("ORT"), meant_framework("jax"), meant_framework(None)
        ('onnx', 'jax', None)

    Raises:
        ValueError: It is one of ours, misspelt, and says which; or it is no text.
    """
    if text is None or text == "":
        return None
    found = canonical_framework(text)
    is_text = isinstance(text, str)
    near = get_close_matches(str(text).casefold(), _FRAMEWORKS, n=1)
    if found in tuple(FRAMEWORKS) or (is_text and not near):
        return found
    return checked_framework(text)


def checked_framework(text: str, what: str = "framework") -> str:
    """Return the framework that *text* names in any case.

    Args:
        text: Such as ``"torch"``, ``"PyTorch"`` or ``"onnxruntime"``.
        what: What the caller calls it.

    Raises:
        ValueError: It names none; says which is near.
    """
    found = canonical_framework(text)
    if found not in tuple(FRAMEWORKS):  # a tuple, since what was given need not be hashable
        near = get_close_matches(str(text).casefold(), _FRAMEWORKS, n=1)
        hint = f"; did you mean {_FRAMEWORKS[near[0]]!r}?" if near else ""
        msg = f"the {what} is {text!r}; there are 'onnx' and 'torch'{hint}"
        raise ValueError(msg)
    return found
