"""XPU: Intel's GPUs, for torch."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from attrs import evolve

from devicecore.errors import NotLiveError
from devicecore.liveness import PhysicalDevice
from devicecore.liveness import hardware as _hardware
from devicecore_factories import _visibility
from devicecore_factories._backend import BackendFactory
from devicecore_factories._torch_device import TorchDevice
from devicecore_factories._torch_probe import torch_gpus, torch_metadata, try_torch

if TYPE_CHECKING:
    from collections.abc import Sequence

    from devicecore.device import Device
    from devicecore.device_factory import DeviceOptions
    from devicecore.liveness import Liveness

_SELECTOR, _MASK = "ONEAPI_DEVICE_SELECTOR", "ZE_AFFINITY_MASK"
_DRIVER = "install Intel's driver for computing (Level Zero), and join the group render"


class XpuFactory(BackendFactory):
    """Makes a device for each GPU, numbered as torch does."""

    device_type = "XPU"
    priority = 192
    frameworks = ("torch",)
    hardware = "Intel GPU"
    systems = ("linux", "win32")
    probe_timeout_s = 60.0  # kernels that were not built for a GPU are compiled at the first use

    def hidden(self) -> Liveness | None:
        gpus = _hardware.pci_gpus(_hardware.INTEL)
        if not gpus:
            return None
        values = (_visibility.value_of(_SELECTOR), _visibility.value_of(_MASK))
        shown = _visibility.shown_by_level_zero(*values, len(gpus))
        hiders = [name for name, shows in zip((_SELECTOR, _MASK), shown, strict=True) if not shows]
        return _visibility.hides(hiders[0], self.hardware) if hiders else None

    def runs_here(self, framework: str | None) -> bool:
        torch: Any = sys.modules.get("torch")
        return torch is not None and bool(torch.xpu.is_initialized())

    def list_physical_devices(self) -> Sequence[PhysicalDevice]:
        """Return the GPUs in the order of the bus, which need not be torch's."""
        return [
            PhysicalDevice(
                "XPU",
                index,
                gpu.address,
                "Intel GPU",
                numa_node=gpu.numa_node,
                details={"pci_bus_id": gpu.address, "chip": f"{gpu.device:#06x}"},
            )
            for index, gpu in enumerate(_hardware.pci_gpus(_hardware.INTEL) or ())
        ]

    def look(self, framework: str) -> Liveness:
        return torch_metadata("xpu")

    def try_out(self, framework: str) -> Liveness:
        return try_torch("xpu:{}", self._gpus)

    def _gpus(self, module: Any) -> list[PhysicalDevice]:
        places = list(self.list_physical_devices())

        def known(_index: int, properties: Any) -> PhysicalDevice | None:
            """Return the first place on the bus, not taken yet, that holds such a chip."""
            chip = f"{getattr(properties, 'device_id', 0):#06x}"
            match = next((place for place in places if place.details["chip"] == chip), None)
            if match is not None:
                places.remove(match)
            return match

        gpus = torch_gpus("XPU", module, known)
        if len(gpus) == 1 and (under_wsl := _hardware.wsl_gpu()):
            gpus = [evolve(gpus[0], physical_id=under_wsl)]
        if not gpus:
            reason = _visibility.because_of("torch shows no Intel GPU", _SELECTOR, _MASK)
            raise NotLiveError("XPU", "missing", reason, _DRIVER)
        return gpus

    def make(self, gpu: PhysicalDevice, name: str, options: DeviceOptions) -> Device:
        return TorchDevice.on(gpu, name, options, f"xpu:{gpu.index}")
