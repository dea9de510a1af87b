"""Mappings that are no dicts: which values they hold, and how one like them is made."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from devicecore.transfer.attributes import attributes_of
from devicecore.transfer.objects import ObjectRule

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence


class _Names:
    """The keys whose values were read, between the attributes and the values."""

    def __init__(self, keys: Collection[Any]) -> None:
        self.keys = keys


class MappingRule(ObjectRule):
    """A mapping that is no dict: its attributes, and a look at whether these are all.

    One that loads its values when they are asked for is not read: only what it holds counts.
    """

    def children(self, value: Any) -> Sequence[Any]:
        """Return the values of its attributes, then the keys that were read and their values."""
        attributes = super().children(value)
        try:
            read = _values(value, attributes)
        except Exception:  # noqa: BLE001 - a file that was closed, for example
            read = {}
        return [*attributes, _Names(tuple(read)), *read.values()]

    def build(self, value: Any, shell: Any, children: Sequence[Any]) -> Any:
        """Give it its attributes; where its values are elsewhere, make it from a dict.

        Raises:
            TypeError: That did not give the values either.
        """
        number = len(attributes_of(value))
        wanted = dict(zip(children[number].keys, children[number + 1 :], strict=True))
        made = super().build(value, shell, children[:number])
        if not wanted or _has(made, wanted):
            return made
        made = type(value)(wanted)
        if _has(made, wanted):
            return made
        msg = f"no copy of a {type(value).__qualname__} holds what was moved"
        raise TypeError(msg)

    def step(self, value: Any, position: int) -> str:
        """Return the attribute or the key."""
        number = len(attributes_of(value))
        if position < number:
            return super().step(value, position)
        return f"[{list(value)[position - number - 1]!r}]"


def _values(mapping: Mapping[Any, Any], attributes: Sequence[Any]) -> dict[Any, Any]:
    """Return what *mapping* holds, or nothing if it makes its values when they are asked for.

    A value that its attributes do not show may be made. Then it is another one the next time, or it
    has come into the attributes.
    """
    held = _ids_below(attributes)
    found = {}
    is_sure = False
    for key in mapping:
        found[key] = value = mapping[key]
        if is_sure or id(value) in held:
            continue
        if mapping[key] is not value or id(value) in _ids_below(attributes):
            return {}
        is_sure = True
    return found


def _ids_below(attributes: Sequence[Any]) -> set[int]:
    """Return the ids of *attributes*, and of what is in the builtin containers among them."""
    level, ids = list(attributes), set(map(id, attributes))
    for containers in ((dict, list, tuple), (dict,)):  # of a ChainMap it is a list of dicts
        level = [
            item
            for each in level
            if isinstance(each, containers)
            for item in (dict.values(each) if isinstance(each, dict) else each)
        ]
        ids.update(map(id, level))
    return ids


def _has(mapping: Any, wanted: dict[Any, Any]) -> bool:
    """Return whether *mapping* gives exactly these values."""
    try:
        return len(mapping) == len(wanted) and all(
            mapping[key] is value for key, value in wanted.items()
        )
    except Exception:  # noqa: BLE001 - a copy that is not whole may raise anything
        return False
