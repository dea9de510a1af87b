"""Words of other libraries for devices that devicecore has no type for, so that none is near."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

_NO_FACTORY = "{word!r} is {what}, for which devicecore has no factory"
_REQUEST = "{word!r} is a request, no device; devicecore.resolve('auto') chooses one"
_FRAMEWORK = "{word!r} is a framework, no device"
_OF_OPENVINO = "{word!r} is OpenVINO's word for several devices; OPENVINO is the type for them"

_HARDWARE = {
    "tpu": "Google's TPU",
    "hpu": "Intel's Gaudi",
    "intel_hpu": "Intel's Gaudi",
    "gaudi": "Intel's Gaudi",
    "ipu": "Graphcore's IPU",
    "mlu": "Cambricon's MLU",
    "musa": "Moore Threads' GPU",
    "ascend": "Huawei's Ascend",
    "gcu": "Enflame's GCU",
    "iluvatar_gpu": "Iluvatar's GPU",
    "metax_gpu": "MetaX' GPU",
    "mtia": "Meta's MTIA",
    "maia": "Microsoft's Maia",
    "fpga": "an FPGA",
    "xla": "torch's word for the devices of XLA",
    "meta": "torch's word for tensors without memory",
    "privateuseone": "torch's word for the devices of a plug-in",
}
_SENTENCES: Final[Mapping[str, str]] = MappingProxyType(
    {
        **dict.fromkeys(_HARDWARE, _NO_FACTORY),
        **dict.fromkeys(("auto", "best", "default", "any"), _REQUEST),
        **dict.fromkeys(
            ("torch", "pytorch", "onnx", "onnxruntime", "jax", "tensorflow", "tf", "paddle", "cv2"),
            _FRAMEWORK,
        ),
        **dict.fromkeys(("multi", "hetero", "batch"), _OF_OPENVINO),
    }
)


def foreign_word(word: str) -> str:
    """Return what *word* means elsewhere, in a sentence; empty for all other words.

    Examples:
        >>> foreign_word("tpu")
        "'tpu' is Google's TPU, for which devicecore has no factory"
    """
    folded = word.casefold()
    return _SENTENCES.get(folded, "").format(word=word, what=_HARDWARE.get(folded))
