"""The plug-in of another company that makes NPUs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from devicecore.device import Device
from devicecore.device_factory import DeviceFactory, DeviceOptions
from devicecore.kernels import Kernel
from devicecore.liveness import Liveness, PhysicalDevice

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


class BoltFactory(DeviceFactory):
    """Makes Bolt's NPU."""

    device_type = "NPU"
    priority = 210
    frameworks = ("onnx",)

    def probe(self, framework: str | None = None, *, deep: bool = False) -> Liveness:
        return Liveness(
            "live" if deep else "untried",
            "ran" if deep else "metadata",
            devices=(PhysicalDevice("NPU", 0, "bolt-0", "Bolt", "NPU"),),
        )

    def create_devices(self, options: DeviceOptions, name_prefix: str) -> Sequence[Device]:
        return [
            Device(f"{name_prefix}/device:NPU:0", device_class="NPU", frameworks=options.frameworks)
        ]

    def kernels(self) -> Iterable[Kernel]:
        return [Kernel("acme_npu.maker", lambda device: "Bolt")]
