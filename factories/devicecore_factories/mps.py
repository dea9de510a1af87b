"""MPS: the GPU of Apple's chips, for torch."""

from __future__ import annotations

import platform
from typing import TYPE_CHECKING, Any

from attrs import evolve

from devicecore.errors import NotLiveError
from devicecore.liveness import PhysicalDevice
from devicecore.optional import require
from devicecore_factories._backend import BackendFactory
from devicecore_factories._torch_device import TorchDevice
from devicecore_factories._torch_probe import torch_metadata, try_torch

if TYPE_CHECKING:
    from collections.abc import Sequence

    from devicecore.device import Device
    from devicecore.device_factory import DeviceOptions
    from devicecore.liveness import Liveness


class MpsFactory(BackendFactory):
    """Makes the one device; torch drives it through Metal."""

    device_type = "MPS"
    priority = 202
    frameworks = ("torch",)
    hardware = "Apple GPU"
    systems = ("darwin",)
    probe_timeout_s = 30.0  # Metal compiles the kernels that the probe uses

    def list_physical_devices(self) -> Sequence[PhysicalDevice]:
        if not self.exists_here():
            return ()
        return (PhysicalDevice("MPS", 0, description=f"Apple GPU, {platform.machine()}"),)

    def look(self, framework: str) -> Liveness:
        return torch_metadata()

    def try_out(self, framework: str) -> Liveness:
        return try_torch("mps", self._gpus)

    def _gpus(self, module: Any) -> list[PhysicalDevice]:
        if not require("torch", extra="torch").backends.mps.is_available():
            reason = (
                "torch finds no GPU that Metal drives: the macOS is too old, or none is shown to it"
            )
            raise NotLiveError("MPS", "broken", reason)
        ask = getattr(module, "recommended_max_memory", None)  # came with torch 2.5
        memory = ask() if ask else 0
        return [evolve(gpu, memory_bytes=memory) for gpu in self.list_physical_devices()]

    def make(self, gpu: PhysicalDevice, name: str, options: DeviceOptions) -> Device:
        return TorchDevice.on(gpu, name, options, "mps")
