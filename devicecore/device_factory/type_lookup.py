"""Which registered types a word means."""

from __future__ import annotations

from typing import TYPE_CHECKING

from devicecore.device_factory.option_checks import is_class
from devicecore.errors import InvalidDeviceNameError, UnknownDeviceError
from devicecore.names import near_types, type_named, types_of_class, why_unknown

if TYPE_CHECKING:
    from devicecore.device_factory.registration import Registration
    from devicecore.device_factory.registry import FactoryRegistry


def types_meant(registry: FactoryRegistry, word: str) -> tuple[str, ...]:
    """Return the type that *word* names, registered or not; for a class its registered types.

    Raises:
        InvalidDeviceNameError: It is no word for a type.
    """
    known = registry.known_types
    if word in tuple(known):  # a tuple, since the word may be anything, hashable or not
        return (word,)
    named = type_named(word, known)
    if named in known or not is_class(named):
        return (named,)
    return tuple(known.intersection(types_of_class(named)) | _seen(registry, named))


def factories_of(registry: FactoryRegistry, word: str) -> tuple[Registration, ...]:
    """Return the factories of a type or class; none for what could not even be a type.

    Raises:
        InvalidDeviceNameError: *word* is a vendor's; says which types are meant.
    """
    try:
        return registry.factories(word)
    except InvalidDeviceNameError as error:
        if error.suggestion:
            raise
        return ()


def registered_type(registry: FactoryRegistry, word: str) -> str:
    """Return the registered type that *word* names.

    Raises:
        InvalidDeviceNameError: It is no word for a type.
        UnknownDeviceError: Nobody registered the type, or it is a class.
    """
    named = type_named(word, registry.known_types)
    if named not in registry.known_types:
        raise unknown(registry, word)
    return named


def unknown(registry: FactoryRegistry, word: str) -> UnknownDeviceError:
    """Return the error for *word*, which names no registered type."""
    types = registry.device_types
    named = type_named(word, types)
    if is_class(named):
        meant = set(types_meant(registry, named))
        of_class = [each for each in types if each in meant]
        why = f"{named} is a class of devices; its types here are {', '.join(of_class) or 'none'}"
        return UnknownDeviceError(word, of_class or types, why)
    near = [each for each in near_types(word, types) if each in types and each != named]
    why = why_unknown(word) or (f"{' or '.join(near)} is near" if near else "")
    return UnknownDeviceError(word, types, why)


def _seen(registry: FactoryRegistry, device_class: str) -> set[str]:
    """Return the types of which a device of the class was seen by a probe."""
    return {
        entry.device_type
        for entry in registry.factories()
        for device in registry.liveness_of(entry, deep=False).devices
        if device.device_class == device_class
    }
