"""`DeviceFactory`: what a backend implements."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, ClassVar

from devicecore.device_factory.device_options import DeviceOptions
from devicecore.liveness import Liveness

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from devicecore.device import Device
    from devicecore.device_factory.registration import Registration
    from devicecore.device_factory.registry import FactoryRegistry
    from devicecore.kernels import Kernel
    from devicecore.liveness import PhysicalDevice


class DeviceFactory(ABC):
    """Makes the devices of one type.

    Building a factory must not fail and must not import a framework. Register one with
    `Registrar`; the class methods speak to the default registry, as TensorFlow's do.

    Attributes:
        device_type: The type that it makes.
        priority: The higher one goes first; None for TensorFlow's default of the type.
        frameworks: What its devices can be live for: ``"torch"``, ``"onnx"``, both or neither.
        probe_timeout_s: Seconds that a deep probe may take.
    """

    device_type: ClassVar[str]
    priority: int | None = None
    frameworks: tuple[str, ...] = ()
    probe_timeout_s: ClassVar[float] = 10.0
    default_registry: ClassVar[FactoryRegistry]

    def probe(self, framework: str | None = None, *, deep: bool = False) -> Liveness:
        """Return whether the devices work on this machine.

        Without *deep*, only look: read files, ask nobody, import no framework. With it, run
        something and compare; it then runs in a child process. This one makes the devices and
        waits for them.

        Args:
            framework: One of `frameworks`, or None for all of them, and the devices as such.
            deep: Whether to run something.
        """
        del framework
        if not deep:
            return Liveness("untried", reason="nothing was run yet")
        devices = self.create_devices(DeviceOptions(), "")
        for device in devices:
            device.synchronize()
            device.close()
        if not devices:
            return Liveness("absent", reason="the factory makes no device on this machine")
        return Liveness("live", "ran", devices=tuple(self.list_physical_devices()))

    def list_physical_devices(self) -> Sequence[PhysicalDevice]:
        """Return the hardware there is, without opening it or taking memory on it."""
        return ()

    @abstractmethod
    def create_devices(self, options: DeviceOptions, name_prefix: str) -> Sequence[Device]:
        """Return the devices.

        Args:
            options: Which ones; `DeviceOptions.physical` holds what the probe saw.
            name_prefix: What their names start with, such as ``"/job:localhost/replica:0/task:0"``;
                may be empty.
        """

    def kernels(self) -> Iterable[Kernel]:
        """Return kernels for these devices only; they come and go with the factory."""
        return ()

    def runs_here(self, framework: str | None) -> bool:
        """Return whether *framework* already runs in this process.

        A probe then runs in this process too, since a child would tell less.
        """
        del framework
        return False

    @classmethod
    def register(
        cls,
        device_type: str,
        factory: type[DeviceFactory],
        priority: int | None = None,
        *,
        override: bool = False,
    ) -> Registration:
        """Register *factory* in the default registry; see `FactoryRegistry.register`."""
        return cls.default_registry.register_class(
            device_type, factory, priority, override=override
        )

    @classmethod
    def get_factory(cls, device_type: str, framework: str | None = None) -> DeviceFactory:
        """Return the live factory that goes first; see `FactoryRegistry.get_factory`."""
        return cls.default_registry.get_factory(device_type, framework)

    @classmethod
    def add_devices(cls, options: DeviceOptions, name_prefix: str) -> list[Device]:
        """Make the devices of all live factories; see `FactoryRegistry.add_devices`."""
        return cls.default_registry.add_devices(options, name_prefix)

    @classmethod
    def new_device(cls, device_type: str, options: DeviceOptions, name_prefix: str) -> Device:
        """Make one device; see `FactoryRegistry.new_device`."""
        return cls.default_registry.new_device(device_type, options, name_prefix)

    @classmethod
    def device_priority(cls, device_type: str) -> int:
        """Return a type's priority; see `FactoryRegistry.device_priority`."""
        return cls.default_registry.device_priority(device_type)
