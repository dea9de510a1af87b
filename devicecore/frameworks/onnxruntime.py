"""ONNX Runtime: its tensors, which are called OrtValue."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, ClassVar

from devicecore.frameworks.base.framework import Framework
from devicecore.frameworks.base.leaf import OneByOne, place_of
from devicecore.frameworks.base.lookup import framework
from devicecore.optional import require

if TYPE_CHECKING:
    from devicecore.frameworks.base.leaf import LeafKind
    from devicecore.transfer.request import Request

# What an `OrtValue` may hold and its own ``numpy()`` refuses.
_NUMPY_LACKS = frozenset(
    f"tensor({name})"
    for name in ("bfloat16", "float8e4m3fn", "float8e4m3fnuz", "float8e5m2", "float8e5m2fnuz")
)


class OrtValues(OneByOne):
    """Tensors of ONNX Runtime; sequences and maps of it stay where they are."""

    def is_elsewhere(self, value: Any, request: Request) -> bool:
        """Return whether it is a tensor that lies elsewhere."""
        if not value.is_tensor():
            return False
        kind, index = _place_of_value(value)
        if request.target.is_host:
            return kind != "cpu"  # it knows one host only
        return (kind, index) != place_of(request.target)

    def move_one(self, value: Any, request: Request) -> Any:
        """Return a copy there."""
        ort = sys.modules["onnxruntime"]
        array, (kind, index) = value.numpy(), place_of(request.target)
        if kind == "cpu":
            return ort.OrtValue.ortvalue_from_numpy(array.copy())
        return ort.OrtValue.ortvalue_from_numpy(array, kind, index)


def _place_of_value(value: Any) -> tuple[str, int]:
    kind = value.device_name().lower()
    if kind == "cpu":
        return "cpu", 0
    try:
        return kind, int(value.__dlpack_device__()[1])
    except (AttributeError, RuntimeError):  # WebGPU's buffers have no number
        return kind, 0


class OnnxRuntime(Framework):
    """ONNX Runtime."""

    module: ClassVar[str] = "onnxruntime"
    array: ClassVar[str] = "OrtValue"
    leaf: ClassVar[LeafKind | None] = OrtValues()

    def to_numpy(self, numpy: Any, array: Any) -> Any:
        """Return an array; of types that ONNX Runtime cannot give to numpy, through torch."""
        if array.data_type() not in _NUMPY_LACKS:
            return super().to_numpy(numpy, array)
        tensor = self.to_torch(require("torch", extra="torch"), array)
        return framework("torch").to_numpy(numpy, tensor)


FRAMEWORK = OnnxRuntime()
