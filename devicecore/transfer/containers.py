"""How the builtin containers are taken apart and put together again."""

from __future__ import annotations

import gc
from abc import ABC, abstractmethod
from collections import OrderedDict, defaultdict, deque
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence


class Rule(ABC):
    """How containers of one kind are taken apart and put together again.

    A container that can be made before what it holds has a *shell*: an empty one. Cycles close
    through it.
    """

    @abstractmethod
    def children(self, value: Any) -> Sequence[Any]:
        """Return what *value* holds."""

    @abstractmethod
    def build(self, value: Any, shell: Any, children: Sequence[Any]) -> Any:
        """Return one like *value* that holds *children*: the shell, filled, if there is one."""

    def shell(self, value: Any) -> Any:
        """Return an empty one like *value*, or None if it has to be made as a whole."""
        del value
        return None

    def step(self, value: Any, position: int) -> str:
        """Return how one writes the way from *value* to one of its children."""
        del value
        return f"[{position}]"


class ListRule(Rule):
    """A list."""

    def children(self, value: Any) -> Sequence[Any]:
        """Return its items."""
        found: list[Any] = value
        return found

    def shell(self, value: Any) -> Any:
        """Return an empty list."""
        del value
        return []

    def build(self, value: Any, shell: Any, children: Sequence[Any]) -> Any:
        """Fill the list."""
        del value
        shell.extend(children)
        return shell


class DequeRule(ListRule):
    """A deque, with its greatest length."""

    def shell(self, value: Any) -> Any:
        """Return an empty deque."""
        return deque(maxlen=value.maxlen)


class TupleRule(Rule):
    """A tuple, or a set: what is made as a whole."""

    def children(self, value: Any) -> Sequence[Any]:
        """Return its items."""
        return tuple(value)

    def build(self, value: Any, shell: Any, children: Sequence[Any]) -> Any:
        """Make it anew."""
        del shell
        return type(value)(children)


class DictRule(Rule):
    """A dict; its keys stay as they are."""

    def children(self, value: Any) -> Sequence[Any]:
        """Return its values."""
        return tuple(value.values())

    def shell(self, value: Any) -> Any:
        """Return an empty one of its type."""
        return type(value)()

    def build(self, value: Any, shell: Any, children: Sequence[Any]) -> Any:
        """Fill it, in the same order."""
        for key, child in zip(value, children, strict=True):
            shell[key] = child
        return shell

    def step(self, value: Any, position: int) -> str:
        """Return the key in brackets."""
        return f"[{list(value)[position]!r}]"


class DefaultDictRule(DictRule):
    """A defaultdict, with its factory."""

    def shell(self, value: Any) -> Any:
        """Return an empty one with the same factory."""
        return defaultdict(value.default_factory)


class MappingProxyRule(Rule):
    """A read-only view of a mapping: it becomes a view of what that mapping becomes."""

    def children(self, value: Any) -> Sequence[Any]:
        """Return the mapping behind it, which nothing but the collector of garbage shows."""
        return gc.get_referents(value)

    def build(self, value: Any, shell: Any, children: Sequence[Any]) -> Any:
        """Make a view of the new mapping."""
        del value, shell
        return MappingProxyType(children[0])

    def step(self, value: Any, position: int) -> str:
        """Return nothing: the view is written like what is behind it."""
        del value, position
        return ""


BUILTIN_RULES: dict[type, Rule] = {
    list: ListRule(),
    tuple: TupleRule(),
    dict: DictRule(),
    OrderedDict: DictRule(),
    defaultdict: DefaultDictRule(),
    deque: DequeRule(),
    set: TupleRule(),
    frozenset: TupleRule(),
    MappingProxyType: MappingProxyRule(),
}
