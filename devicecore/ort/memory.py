"""Memory of a device that only ONNX Runtime reaches."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from devicecore.errors import NotLiveError
from devicecore.optional import require
from devicecore.ort.plugins import native_device, register

if TYPE_CHECKING:
    from collections.abc import Sequence

    from devicecore.ort.spec import SessionSpec

# ONNX Runtime's word for the memory of a provider built into it.
_MEMORY = {"CUDAExecutionProvider": "cuda"}


def empty_value(spec: SessionSpec, shape: Sequence[int], dtype: str) -> Any:
    """Return a new ``OrtValue`` in the memory of the device that *spec* opens sessions on, unset.

    Args:
        spec: How sessions are opened there.
        shape: Its dimensions.
        dtype: A numpy dtype's name, such as ``"float32"``.

    Raises:
        NotLiveError: The provider has no device, or ONNX Runtime cannot allocate there.
        MissingDependencyError: ONNX Runtime is not installed.
    """
    ort = require("onnxruntime", extra="onnx")
    kind = require("numpy", extra="onnx").dtype(dtype).type
    create = ort.OrtValue.ortvalue_from_shape_and_type
    if not spec.is_plugin:
        if spec.provider not in _MEMORY:
            raise NotLiveError(spec.provider, "absent", "no memory can be allocated on it")
        index = int(spec.options.get("device_id", "0"))
        return create(tuple(shape), kind, _MEMORY[spec.provider], index)
    if spec.library is not None:
        register(spec.library)
    native = native_device(spec.provider, spec.ep_device_index or 0)
    memory = native.memory_info(ort.OrtDeviceMemoryType.DEFAULT)
    try:
        return create(tuple(shape), kind, memory_info=memory)
    except TypeError:  # the parameter came with onnxruntime 1.31
        reason = f"onnxruntime {ort.__version__} allocates no memory of plug-ins"
        fix = "pip install --upgrade onnxruntime"
        raise NotLiveError(spec.provider, "version_mismatch", reason, fix) from None
