"""A factory of devices that exist nowhere, for what no machine at hand can show."""

from __future__ import annotations

from typing import TYPE_CHECKING

from devicecore.device import Device
from devicecore.device_factory import DeviceFactory, DeviceOptions
from devicecore.liveness import Liveness, PhysicalDevice

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from devicecore.kernels import Kernel


class FakeFactory(DeviceFactory):
    """Makes fake devices, and answers probes with whatever it was told; derive from it.

    Examples:
        >>> class TwoGpus(FakeFactory):
        ...     device_type = "CUDA"
        ...     count = 2
        >>> [str(device.parsed_name) for device in TwoGpus().create_devices(DeviceOptions(), "")]
        ['/device:CUDA:0', '/device:CUDA:1']

    Attributes:
        count: How many GPUs there are.
        device_class: Their class.
        answer: What every probe answers; None for "live".
        torch_name: torch's name of the devices before the index, such as ``"cuda"``, or None.
        own_kernels: Kernels for these devices only.
    """

    device_type = "FAKE"
    priority: int | None = 0
    count: int = 1
    device_class: str = "GPU"
    answer: Liveness | None = None
    torch_name: str | None = None
    own_kernels: tuple[Kernel, ...] = ()

    def probe(self, framework: str | None = None, *, deep: bool = False) -> Liveness:
        """Return `answer`, or say that the fake GPUs are live."""
        del framework, deep
        if self.answer is not None:
            return self.answer
        devices = tuple(self.list_physical_devices())
        return Liveness("live", "ran", reason="a fake is always live", devices=devices)

    def list_physical_devices(self) -> Sequence[PhysicalDevice]:
        """Return the fake GPUs."""
        return tuple(
            PhysicalDevice(
                self.device_type,
                index,
                physical_id=f"fake-{index}",
                description=f"fake {self.device_type}",
                device_class=self.device_class,
            )
            for index in range(self.count)
        )

    def create_devices(self, options: DeviceOptions, name_prefix: str) -> Sequence[Device]:
        """Return a device for each fake GPU that *options* let through."""
        return [
            Device(
                f"{name_prefix}/device:{self.device_type}:{gpu.index}",
                device_class=gpu.device_class,
                description=gpu.description,
                physical_id=gpu.physical_id,
                frameworks=options.frameworks,
                torch_device=f"{self.torch_name}:{gpu.index}" if self.torch_name else None,
            )
            for gpu in options.chosen(self.device_type, self.list_physical_devices())
        ]

    def kernels(self) -> Iterable[Kernel]:
        """Return `own_kernels`."""
        return self.own_kernels
