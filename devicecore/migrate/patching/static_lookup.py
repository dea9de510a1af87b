"""Reads attributes of objects without running their code."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

ABSENT: Final = object()
"""What `static` returns where there is nothing."""


# Objects are looked at without running code of theirs, which may import something: no getattr, and
# no isinstance, which asks a proxy for its __class__.
def is_a(value: Any, kind: type) -> bool:
    """Return whether *value* is of a kind, whatever it says of itself."""
    return issubclass(type(value), kind)


def own(value: Any, name: str) -> Any:
    """Return an attribute that *value* has without being asked for it, or None."""
    try:
        return object.__getattribute__(value, name)
    except AttributeError:
        return None


def names_of(owner: Any) -> Mapping[str, Any]:
    """Return the names that a module or a class itself has."""
    names = own(owner, "__dict__")
    return names if isinstance(names, (dict, MappingProxyType)) else {}


def static(owner: Any, name: str) -> Any:
    """Return what *owner* itself or a base of it calls *name*, unbound, or `ABSENT`."""
    holder = definer(owner, name) if is_a(owner, type) else owner
    return names_of(holder).get(name, ABSENT)


def definer(cls: type, name: str) -> type | None:
    """Return which class has what *cls* calls *name*, if any."""
    return next((base for base in cls.__mro__ if name in vars(base)), None)
