"""CUDA: the runtime's current device, as torch and CuPy set it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from devicecore.frameworks.base.adapter import Adapter

if TYPE_CHECKING:
    from types import ModuleType

    from devicecore.device import Device


class TorchCuda(Adapter):
    """Exchanges the current CUDA device of this thread; streams are left alone.

    A scope of torch's factories alone would leave ``.cuda()``, Triton and NCCL at the first GPU.
    What is saved is the device before, None where CUDA was not open yet and so at 0.
    """

    title: ClassVar[str] = "CUDA's current device"
    frameworks: ClassVar[frozenset[str]] = frozenset({"torch"})

    def __init__(self, torch: ModuleType) -> None:
        self._cuda: Any = getattr(torch, "cuda", None)

    def place_of(self, device: Device) -> Any:
        """Return the ordinal of a CUDA device, and nothing for any other."""
        ordinal = cuda_ordinal(device)
        return ordinal if ordinal is not None and self._cuda.is_available() else None

    def save(self, place: int) -> Any:
        """Return the current device, None of a CUDA that is not open."""
        del place
        return self._cuda.current_device() if self._cuda.is_initialized() else None

    def set(self, place: int, saved: int | None) -> None:
        """Make *place* current, unless it is; a CUDA that is not open is at 0."""
        if place != (saved or 0):
            self._cuda.set_device(place)

    def leave(self, saved: int | None) -> None:
        """Put the device back that was current before."""
        cuda = self._cuda
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
        if device_type not in {"CUDA", "ROCM"} or not self._cuda.is_initialized():
            return None
        return int(self._cuda.current_device())


def cuda_ordinal(device: Device) -> int | None:
    """Return CUDA's number of the GPU in whose memory *device* computes; also of a ROCm GPU."""
    memory = device.memory_device
    kind, _, index = (memory.torch_device or "").partition(":")
    if kind == "cuda":
        return int(index or 0)
    if memory.device_type == "CUDA" and device.is_local:
        return memory.parsed_name.index
    return None
