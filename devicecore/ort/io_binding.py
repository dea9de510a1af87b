"""ONNX Runtime's IOBinding without the Python around it, which costs more than a small model.

These are names that its own ``IOBinding`` and ``OrtValue`` are made of. Everything that relies on
them is in this file.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from devicecore.optional import require
from devicecore.ort.spec import CPU_PROVIDER

if TYPE_CHECKING:
    from devicecore.ort.spec import SessionSpec

HOST = "cpu"

_ON_AMD = frozenset({"MIGraphXExecutionProvider", "ROCMExecutionProvider"})
# Providers whose tensors lie in a GPU's memory that torch calls "cuda", AMD's included.
_ON_CUDA = frozenset({"CUDAExecutionProvider", "TensorrtExecutionProvider"}) | _ON_AMD
_AMD = 0x1002  # its PCI number, by which ONNX Runtime tells whose memory it is


def memory_of(spec: SessionSpec) -> str:
    """Return where a session of *spec* takes its tensors: ``"cpu"``, or torch's name of a GPU.

    Tensors of the host are taken by every session; this is where nothing needs to be moved.
    """
    if spec.provider in _ON_CUDA and not spec.is_plugin:
        return f"cuda:{spec.options.get('device_id', '0')}"
    return HOST


def takes_host_memory(spec: SessionSpec) -> bool:
    """Return whether the provider reads a bound array where it lies, at each run.

    Others copy it to their device once, when it is bound.
    """
    return spec.provider == CPU_PROVIDER


def new_binding(session: Any) -> Any:
    """Return a new binding of ONNX Runtime's *session*; it serves one call at a time."""
    return session.io_binding()._iobinding  # noqa: SLF001 - see the top of this file


def bound_run(session: Any) -> Any:
    """Return the function that runs *session* on a binding, with run options."""
    return session._sess.run_with_iobinding  # noqa: SLF001 - see the top of this file


def native_device_of(memory: str) -> Any:
    """Return ONNX Runtime's device for *memory*, ``"cpu"`` or a name such as ``"cuda:1"``."""
    ort = require("onnxruntime", extra="onnx")
    kind, _, index = memory.partition(":")
    if kind != HOST and not _ON_AMD.isdisjoint(ort.get_available_providers()):
        made = _device_of_amd(ort, int(index or 0))
    else:
        made = ort.OrtDevice.make(kind, int(index or 0))
    return made._get_c_device()  # noqa: SLF001 - see the top of this file


def _device_of_amd(ort: Any, index: int) -> Any:
    """Return the device of a build for AMD's GPUs, which has no provider for others."""
    try:
        return ort.OrtDevice.make("gpu", index, _AMD)
    except TypeError:  # before onnxruntime 1.23 a device has no maker, and each GPU is "cuda"
        return ort.OrtDevice.make("cuda", index)


def native_value(value: Any) -> Any:
    """Return what *value*, an ``OrtValue``, wraps."""
    return value._ortvalue  # noqa: SLF001 - see the top of this file


def value_type() -> Any:
    """Return the class ``OrtValue`` of ONNX Runtime."""
    return require("onnxruntime", extra="onnx").OrtValue


def value_on(array: Any, device: Any) -> Any:
    """Return what a binding takes for *array*, a numpy array that has to outlive it."""
    ort = require("onnxruntime", extra="onnx")
    wrapped: Any = ort.capi._pybind_state.OrtValue  # noqa: SLF001 - see the top of this file
    return wrapped.ortvalue_from_numpy(array, device)
