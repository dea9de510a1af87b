"""CuPy: its arrays, its devices, and the CUDA runtime's current device."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, ClassVar

from devicecore.errors import TransferError
from devicecore.frameworks.base.cuda_current import TorchCuda, cuda_ordinal
from devicecore.frameworks.base.framework import Framework
from devicecore.frameworks.base.leaf import OneByOne, place_of
from devicecore.names import DeviceName

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import ModuleType

    from devicecore.device import Device
    from devicecore.frameworks.base.adapter import Adapter
    from devicecore.frameworks.base.leaf import LeafKind
    from devicecore.transfer.request import Request


class CupyCuda(TorchCuda):
    """The same through CuPy, which follows the runtime's current device whoever sets it."""

    title: ClassVar[str] = "CuPy"
    frameworks: ClassVar[frozenset[str]] = frozenset({"cupy"})

    def __init__(self, cupy: Any) -> None:
        super().__init__(cupy)
        self._cuda = _Runtime(cupy.cuda.runtime)

    def place_of(self, device: Device) -> Any:
        """Return the ordinal of a CUDA device, and nothing for any other.

        Raises:
            NotLiveError: It is one, but there is no driver or no GPU.
        """
        place = super().place_of(device)
        if place is None and cuda_ordinal(device) is not None:
            raise self.refusal(device, "CuPy finds no driver, or no GPU")
        return place


class _Runtime:
    """CuPy's bare runtime by the names that torch uses."""

    def __init__(self, runtime: Any) -> None:
        self.current_device = runtime.getDevice
        self.set_device = runtime.setDevice
        self._count = runtime.getDeviceCount
        self._is_available = False

    def is_available(self) -> bool:
        """Return whether there is a GPU; CuPy raises where there is no driver."""
        if not self._is_available:
            try:
                self._is_available = bool(self._count())
            except Exception:  # noqa: BLE001 - CuPy's own error of the runtime
                return False
        return self._is_available

    def is_initialized(self) -> bool:
        """Return whether there is a current device: to ask for it opens nothing."""
        return self.is_available()


class CupyArrays(OneByOne):
    """Arrays of CuPy, which are on a CUDA GPU always."""

    def is_elsewhere(self, value: Any, request: Request) -> bool:
        """Return whether it lies elsewhere."""
        return place_of(request.target) != ("cuda", value.device.id)

    def move_one(self, value: Any, request: Request) -> Any:
        """Return a copy on another GPU."""
        kind, index = place_of(request.target)
        if kind != "cuda":
            fix = "convert it with devicecore.to_numpy"
            raise TransferError("", f"CuPy has no arrays on {request.target.name}", fix)
        cupy = sys.modules["cupy"]
        with cupy.cuda.Device(index):
            return cupy.array(value)


class Cupy(Framework):
    """CuPy, which is for CUDA and ROCm alone."""

    module: ClassVar[str] = "cupy"
    array: ClassVar[str] = "ndarray"
    uses: ClassVar[tuple[str, ...]] = ("cuda.runtime.getDevice", "cuda.runtime.setDevice")
    leaf: ClassVar[LeafKind | None] = CupyArrays()

    def adapters(self, module: ModuleType) -> Sequence[Adapter]:
        """Return what sets the runtime's current device."""
        return (CupyCuda(module),)

    def name_of_device(self, device: Any, kind: str) -> DeviceName | None:
        """Return the name of a ``cupy.cuda.Device``."""
        return DeviceName(device_type="CUDA", index=int(device.id)) if kind == "Device" else None

    def to_numpy(self, numpy: Any, array: Any) -> Any:
        """Return a copy on the host."""
        del numpy
        return array.get()


FRAMEWORK = Cupy()
