"""Acme's NPUs: a factory, its devices and the kernels that come with them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from devicecore.device import Device
from devicecore.device_factory import DeviceFactory, DeviceOptions
from devicecore.kernels import Kernel
from devicecore.liveness import Liveness, PhysicalDevice

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

# A test counts the probes in this file, and takes the NPU out of the machine with the other one.
COUNT_FILE = "ACME_NPU_COUNT_FILE"
UNPLUGGED = "ACME_NPU_UNPLUGGED"


class NpuDevice(Device):
    """One of Acme's NPUs; this one computes on the host."""


class NpuFactory(DeviceFactory):
    """Makes Acme's NPUs."""

    device_type = "NPU"
    priority = 220
    frameworks = ("onnx",)

    def probe(self, framework: str | None = None, *, deep: bool = False) -> Liveness:
        if not deep:
            return Liveness("untried", reason="nothing was run yet")
        if UNPLUGGED in os.environ:
            return Liveness("absent", reason="there is no NPU of Acme's", fix="plug one in")
        if COUNT_FILE in os.environ:
            with Path(os.environ[COUNT_FILE]).open("a", encoding="utf-8") as file:
                file.write(f"{os.getpid()}\n")
        if scale(None, 6, 7) != 42:
            return Liveness("broken", "ran", reason="the NPU computes wrong")
        return Liveness(
            "live", "ran", reason="6 times 7 is 42", devices=tuple(self.list_physical_devices())
        )

    def list_physical_devices(self) -> Sequence[PhysicalDevice]:
        return [
            PhysicalDevice("NPU", index, f"acme-{index}", "Acme NPU 1", "NPU") for index in (0, 1)
        ]

    def create_devices(self, options: DeviceOptions, name_prefix: str) -> Sequence[Device]:
        return [
            NpuDevice(
                f"{name_prefix}/device:NPU:{gpu.index}",
                device_class="NPU",
                description=gpu.description,
                physical_id=gpu.physical_id,
                frameworks=options.frameworks,
            )
            for gpu in options.chosen("NPU", options.physical)
        ]

    def kernels(self) -> Iterable[Kernel]:
        return [Kernel("acme_npu.scale", scale), Kernel("acme_npu.maker", lambda device: "Acme")]


def scale(device: Device | None, x: float, factor: float) -> float:
    return x * factor
