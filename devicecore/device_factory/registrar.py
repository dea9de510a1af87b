"""`Registrar`: register a factory in one line."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from devicecore.device_factory.registry import default_registry

if TYPE_CHECKING:
    from devicecore.device_factory.factory import DeviceFactory
    from devicecore.device_factory.registration import Registration
    from devicecore.device_factory.registry import FactoryRegistry

FactoryClass = TypeVar("FactoryClass", bound="type[DeviceFactory]")


class Registrar:
    """Registers a factory class: at once if one is given, else as a decorator.

    Args:
        device_type: The type that the factory makes.
        factory: The class; its constructor takes no arguments.
        priority: None for the factory's own, or TensorFlow's default of the type: GPU and SYCL 200,
            GPUCompatibleCPU 70, ThreadPoolDevice 60, others 50.
        registry: Where; None for the default registry.
        override: Replace a factory of the same type and name.

    Attributes:
        registration: The registration, or None before the decorator was used.

    Raises:
        RegistrationError: A factory of the same type and name is there already.
    """

    def __init__(
        self,
        device_type: str,
        factory: type[DeviceFactory] | None = None,
        priority: int | None = None,
        *,
        registry: FactoryRegistry | None = None,
        override: bool = False,
    ) -> None:
        self._device_type = device_type
        self._priority = priority
        self._registry = registry or default_registry()
        self._override = override
        self.registration: Registration | None = None
        if factory is not None:
            self(factory)

    def __call__(self, factory: FactoryClass) -> FactoryClass:
        """Register *factory* and return it."""
        self.registration = self._registry.register_class(
            self._device_type, factory, self._priority, override=self._override
        )
        return factory

    def unregister(self) -> None:
        """Take the factory out of the registry again.

        Raises:
            RegistrationError: It is not registered.
        """
        if self.registration is not None:
            self._registry.unregister(self.registration)
