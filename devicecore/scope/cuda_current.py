"""CUDA: the runtime's current device, which torch and CuPy share."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from devicecore.scope.adapter import Adapter

if TYPE_CHECKING:
    from types import ModuleType

    from devicecore.device import Device


class CudaCurrent(Adapter):
    """Exchanges the current CUDA device of this thread; streams are left alone.

    What is saved is the device before, None where CUDA was not open yet and so at 0.
    """

    title = "CUDA's current device"
    frameworks = frozenset({"torch", "cupy"})

    def __init__(self, module: ModuleType) -> None:
        self._module: Any = module

    def place_of(self, device: Device) -> Any:
        """Return the ordinal of a CUDA device, and nothing for any other."""
        memory = device.memory_device
        if not device.is_local:
            return None
        kind, _, index = (memory.torch_device or "").partition(":")
        if kind == "cuda":  # a ROCm card too, to torch's HIP builds
            ordinal = int(index or 0)
        elif memory.device_type == "CUDA":
            ordinal = memory.parsed_name.index or 0
        else:
            return None
        return ordinal if self._runtime().is_available() else None

    def _runtime(self) -> Any:
        torch = sys.modules.get("torch")
        cuda: Any = getattr(torch, "cuda", None)
        if cuda is not None and cuda.is_available():
            return cuda
        return _CupyRuntime(self._module) if self._module.__name__ == "cupy" else cuda

    def enter(self, place: int) -> Any:
        """Make *place* current, unless it is; a CUDA that is not open is at 0."""
        cuda = self._runtime()
        before = cuda.current_device() if cuda.is_initialized() else None
        if place != (before or 0):
            cuda.set_device(place)
        return before

    def leave(self, saved: int | None) -> None:
        """Put the device back that was current before."""
        cuda = self._runtime()
        if cuda.is_initialized() and cuda.current_device() != (saved or 0):
            cuda.set_device(saved or 0)

    def join(self, upper: Any, lower: Any) -> Any:
        """Return the older device."""
        del upper
        return lower

    def leave_in_child(self, saved: Any) -> None:
        """Do nothing: CUDA does not work in a child of a process that had opened it."""

    def current_index(self, device_type: str) -> int | None:
        """Return the current ordinal where CUDA is open."""
        if device_type not in {"CUDA", "ROCM"}:
            return None
        cuda = self._runtime()
        return int(cuda.current_device()) if cuda.is_initialized() else None


class _CupyRuntime:
    """CuPy's runtime, by the names that torch uses."""

    def __init__(self, cupy: Any) -> None:
        self._runtime = cupy.cuda.runtime

    def is_available(self) -> bool:
        return bool(self._runtime.getDeviceCount())

    def is_initialized(self) -> bool:
        return True  # CuPy opens CUDA when it is imported

    def current_device(self) -> int:
        return int(self._runtime.getDevice())

    def set_device(self, ordinal: int) -> None:
        self._runtime.setDevice(ordinal)
