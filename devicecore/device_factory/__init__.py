"""Device factories: what a backend implements, and the registry that picks the live ones."""

from devicecore.device_factory.candidates import Candidate
from devicecore.device_factory.device_options import DeviceOptions
from devicecore.device_factory.factory import DeviceFactory
from devicecore.device_factory.registrar import Registrar
from devicecore.device_factory.registration import UNREGISTERED_PRIORITY, Registration
from devicecore.device_factory.registry import FactoryRegistry, default_registry

__all__ = [
    "UNREGISTERED_PRIORITY",
    "Candidate",
    "DeviceFactory",
    "DeviceOptions",
    "FactoryRegistry",
    "Registrar",
    "Registration",
    "default_registry",
]


def __dir__() -> list[str]:
    return sorted(__all__)
