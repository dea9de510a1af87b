"""The attributes that an object keeps, in its ``__dict__`` and in its slots."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_NOT_KEPT = frozenset({"__dict__", "__weakref__"})
# attrs keeps the hash of some objects; of one with other fields it is another.
_CACHED_HASH = "_attrs_cached_hash"


def attributes_of(value: Any) -> dict[str, Any]:
    """Return the attributes that *value* keeps, those that are set."""
    kept = getattr(value, "__dict__", None)
    found = dict(kept) if isinstance(kept, dict) and kept is not value else {}
    for name in _slots(type(value)):
        try:
            found[name] = object.__getattribute__(value, name)
        except AttributeError:  # a slot that is not set
            continue
    return found


def set_attributes(new: Any, names: Iterable[str], values: Iterable[Any]) -> None:
    """Give *new* attributes, past any ``__setattr__`` and property of its class."""
    slots = frozenset(_slots(type(new)))
    for name, value in zip(names, values, strict=True):
        kept = None if name == _CACHED_HASH else value
        if name in slots:
            object.__setattr__(new, name, kept)
        else:
            new.__dict__[name] = kept


def adopt(new: Any, value: Any, attributes: Mapping[str, Any]) -> None:
    """Give *new*, a container like *value*, the attributes."""
    if getattr(value, "__dict__", None) is value:  # its items are its attributes
        object.__setattr__(new, "__dict__", new)
    set_attributes(new, attributes, attributes.values())


def _slots(kind: type) -> list[str]:
    names: list[str] = []
    for each in kind.__mro__:
        slots = each.__dict__.get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            if name in _NOT_KEPT:
                continue
            private = name.startswith("__") and not name.endswith("__")
            names.append(f"_{each.__name__.lstrip('_')}{name}" if private else name)
    return names
