"""How subclasses of the builtin containers, data classes and other objects are rebuilt.

No constructor of theirs is called, as what it would do to tensors is unknown. The exception are
structures of C, such as those that functions of torch return: nothing else makes them.
"""

from __future__ import annotations

import copy
from collections import OrderedDict, defaultdict, deque
from typing import TYPE_CHECKING, Any

from devicecore.transfer.attributes import adopt, attributes_of, set_attributes
from devicecore.transfer.containers import Rule

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

# Most special first: an OrderedDict is a dict.
BASES: tuple[type[Any], ...] = (
    list,
    tuple,
    OrderedDict,
    defaultdict,
    dict,
    deque,
    set,
    frozenset,
)


class SubclassRule(Rule):
    """A subclass of a builtin container: its items, then its attributes.

    Args:
        base: The builtin.
    """

    def __init__(self, base: type[Any]) -> None:
        self.base = base
        self.is_mapping: bool = issubclass(base, dict)
        self._make: Callable[..., Any] = base.__new__

    def _items(self, value: Any) -> list[Any]:
        # Past any method of the subclass, which may make items up.
        return list(self.base.values(value) if self.is_mapping else self.base.__iter__(value))

    def children(self, value: Any) -> Sequence[Any]:
        """Return its items, then the values of its attributes."""
        return [*self._items(value), *attributes_of(value).values()]

    def shell(self, value: Any) -> Any:
        """Return an empty one of its class; None for a tuple or a set."""
        if self.base in {tuple, set, frozenset}:
            return None
        made = self._make(type(value))
        if self.base is deque:
            deque.__init__(made, (), value.maxlen)
        elif self.base is defaultdict:
            made.default_factory = value.default_factory
        return made

    def build(self, value: Any, shell: Any, children: Sequence[Any]) -> Any:
        """Fill it, and give it its attributes."""
        number = len(self._items(value))
        items, attributes = (
            children[:number],
            dict(zip(attributes_of(value), children[number:], strict=True)),
        )
        made = self._whole(value, items) if shell is None else shell
        if self.is_mapping:
            for key, item in zip(self.base.__iter__(value), items, strict=True):
                self.base.__setitem__(made, key, item)
        elif shell is not None:
            self.base.extend(made, items)
        adopt(made, value, attributes)
        return made

    def _whole(self, value: Any, items: Sequence[Any]) -> Any:
        kind = type(value)
        if hasattr(kind, "n_sequence_fields"):  # a structure of C, which makes itself only
            return kind(items)
        made: Any = self._make(kind, items)
        if self.base is set:
            made_set: set[Any] = made
            set.update(made_set, items)
        return made

    def step(self, value: Any, position: int) -> str:
        """Return the key, the field, the index or the attribute."""
        number = len(self._items(value))
        if position >= number:
            return f".{list(attributes_of(value))[position - number]}"
        if self.is_mapping:
            return f"[{list(self.base.__iter__(value))[position]!r}]"
        fields = getattr(value, "_fields", ())
        return f".{fields[position]}" if position < len(fields) else f"[{position}]"


class ObjectRule(Rule):
    """An object that is its attributes, such as one of a data class."""

    def children(self, value: Any) -> Sequence[Any]:
        """Return the values of its attributes."""
        return list(attributes_of(value).values())

    def shell(self, value: Any) -> Any:
        """Return an object of its class; its attributes come later."""
        kind: Any = type(value)
        try:
            return object.__new__(kind)
        except TypeError:  # a class with a layout of its own, such as an exception
            return copy.copy(value)

    def build(self, value: Any, shell: Any, children: Sequence[Any]) -> Any:
        """Give it all its attributes."""
        set_attributes(shell, attributes_of(value), children)
        return shell

    def step(self, value: Any, position: int) -> str:
        """Return the attribute."""
        return f".{list(attributes_of(value))[position]}"


class CacheLayerRule(ObjectRule):
    """A layer of transformers' caches, which notes the device of its tensors."""

    def build(self, value: Any, shell: Any, children: Sequence[Any]) -> Any:
        """Give it all its attributes, and note the new device."""
        made = super().build(value, shell, children)
        where = getattr(getattr(made, "keys", None), "device", None)
        if where is not None and hasattr(made, "device"):
            made.device = where
        return made


class PackedSequenceRule(Rule):
    """torch's PackedSequence, whose ``batch_sizes`` belong on the host."""

    _moved = ("data", "sorted_indices", "unsorted_indices")

    def children(self, value: Any) -> Sequence[Any]:
        """Return the tensors that are moved."""
        return [getattr(value, name) for name in self._moved]

    def build(self, value: Any, shell: Any, children: Sequence[Any]) -> Any:
        """Make one with the same sizes."""
        del shell
        data, order, back = children
        return tuple.__new__(type(value), (data, value.batch_sizes, order, back))

    def step(self, value: Any, position: int) -> str:
        """Return the field."""
        del value
        return f".{self._moved[position]}"
