"""What the user's variables say of device types: which go first, and which are left out."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from attrs import frozen

from devicecore import config
from devicecore.device_factory.option_checks import is_class
from devicecore.errors import ConfigurationError, InvalidDeviceNameError
from devicecore.names import (
    DEVICE_TYPES,
    near_types,
    type_named,
    types_meant_by_vendor,
    types_of_class,
)
from devicecore.names.types import FIXED_TYPES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from devicecore.device_factory.registration import Registration
    from devicecore.device_factory.registry import FactoryRegistry

_PREFER, _EXCLUDE = "DEVICECORE_PREFER", "DEVICECORE_EXCLUDE"


@frozen
class _Wish:
    """What one word of a variable means.

    Attributes:
        types: The types that it names.
        device_class: The class that it names, or an empty text.
    """

    types: frozenset[str]
    device_class: str = ""


def wishes(registry: FactoryRegistry) -> Callable[[Registration], int]:
    """Return what tells the place of a factory in the user's list; all that are not in it are last.

    Raises:
        ConfigurationError: A word of a variable is no device type, class, provider or vendor.
    """
    settings, known = config.load(), registry.known_types
    _meant(_EXCLUDE, tuple(sorted(settings.exclude)), known)
    wished = _meant(_PREFER, settings.prefer, known)

    def place(registration: Registration) -> int:
        for index, wish in enumerate(wished):
            if registration.device_type in wish.types:
                return index
            if wish.device_class and any(
                device.device_class == wish.device_class
                for device in registry.liveness_of(registration, deep=False).devices
            ):
                return index
        return len(wished)

    return place


def is_excluded(device_type: str, known: frozenset[str]) -> bool:
    """Return whether the user leaves a type out, or its class where that is one of our types."""
    words = config.load().exclude
    return any(device_type in _wish(word, known).types for word in words)


@lru_cache(maxsize=64)
def _meant(variable: str, words: tuple[str, ...], known: frozenset[str]) -> tuple[_Wish, ...]:
    wished = []
    for word in words:
        wish = _wish(word, known)
        if not (wish.types & (known | FIXED_TYPES) or wish.device_class):
            raise ConfigurationError(variable, ",".join(words), _possible(word, known))
        if variable == _EXCLUDE and "CPU" in wish.types:
            possible = "any device types but the CPU, which serves the others"
            raise ConfigurationError(variable, ",".join(words), possible)
        wished.append(wish)
    return tuple(wished)


def _wish(word: str, known: Iterable[str]) -> _Wish:
    try:
        named = type_named(word, known)
    except InvalidDeviceNameError:
        return _Wish(frozenset(types_meant_by_vendor(word)))
    if is_class(named) and named not in known:
        return _Wish(frozenset(types_of_class(named)), named)
    return _Wish(frozenset({named}))


def _possible(word: str, known: frozenset[str]) -> str:
    """Return what the variable can be, and what is near *word*."""
    types = ", ".join(sorted(known | DEVICE_TYPES))
    near = near_types(word.partition(":")[0], known)
    hint = f"; for {word!r} there is {near[0]!r}" if near else f"; {word!r} is none"
    return f"device types, separated by commas: {types}; or GPU, NPU{hint}"
