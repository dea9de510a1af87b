"""`Registration`: one line of the registry, known before the factory is imported."""

from __future__ import annotations

import sys
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from attrs import field, frozen

from devicecore.errors import RegistrationError
from devicecore.liveness.interpreter import interpreter
from devicecore.names import canonical_type
from devicecore.names.grammar import WORD

if TYPE_CHECKING:
    from attrs import Attribute

    from devicecore.device_factory.factory import DeviceFactory

UNREGISTERED_PRIORITY = -1
"""The priority of a type that nobody registered."""

_DEFAULT_PRIORITY = 50
# TensorFlow's own numbers, for factories that do not state theirs.
_TENSORFLOW_PRIORITIES = {"GPU": 200, "SYCL": 200, "GPUCompatibleCPU": 70, "ThreadPoolDevice": 60}


def default_priority(device_type: str) -> int:
    """Return TensorFlow's default priority of *device_type*."""
    return _TENSORFLOW_PRIORITIES.get(device_type, _DEFAULT_PRIORITY)


def _checked_type(device_type: str) -> str:
    given: object = device_type
    if not isinstance(given, str) or not WORD.fullmatch(given):
        raise RegistrationError(str(given), "a type is a letter, then letters, digits and _")
    return canonical_type(device_type)


def _checked_priority(registration: Registration, _: Attribute[Any], priority: object) -> None:
    if priority is not None and not isinstance(priority, int):
        raise RegistrationError(registration.device_type, f"its priority is {priority!r}, no int")


@frozen
class Registration:
    """One factory of one device type.

    Attributes:
        device_type: The type that the factory makes.
        factory: The class, or ``"module:Class"``, imported when it is first needed.
        priority: The higher one goes first; None where only the factory itself can tell.
        distribution: The distribution that brings it, or the module of a class in this program.
        entry_name: Its name in there; a distribution may bring several of one type.
        version: The distribution's version.
        requires: The versions of devicecore that it works with, such as ``">=0.1,<0.2"``.
        trusted: Whether it is ours, so that importing and asking it is safe here.
        after_class: It takes part only once a device of this class is live.
        only_named: It takes part only where its type is asked for.
    """

    device_type: str = field(converter=_checked_type)
    factory: str | type[DeviceFactory]
    priority: int | None = field(default=None, validator=_checked_priority)
    distribution: str = ""
    entry_name: str = ""
    version: str = ""
    requires: str = ""
    trusted: bool = False
    after_class: str | None = None
    only_named: bool = False

    @property
    def identity(self) -> tuple[str, str, str]:
        """What tells it from all others."""
        return (self.device_type, self.distribution, self.entry_name)

    @property
    def origin(self) -> str:
        """Where it comes from, for messages."""
        version = f" {self.version}" if self.version else ""
        return f"{self.distribution}{version} ({self.entry_name})"

    @property
    def target(self) -> str | None:
        """``"module:Class"`` for another process to import; None where it could not.

        It could not import a class of the main script, of a function's body or of a notebook, and
        a frozen or embedded program has no interpreter to start.
        """
        if interpreter() is None:
            return None
        if isinstance(self.factory, str):
            return self.factory
        module, name = self.factory.__module__, self.factory.__qualname__
        try:
            found = attrgetter(name)(sys.modules[module])
        except (KeyError, AttributeError):
            return None
        return f"{module}:{name}" if found is self.factory and module != "__main__" else None
