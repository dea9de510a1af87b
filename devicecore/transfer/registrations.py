"""Containers that others made known: to devicecore, to torch's pytree, or to optree."""

from __future__ import annotations

import sys
import threading
from typing import TYPE_CHECKING, Any

from devicecore.errors import RegistrationError
from devicecore.fork import rearm_after_fork
from devicecore.transfer.containers import BUILTIN_RULES, Rule
from devicecore.transfer.objects import ObjectRule

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence


class FlattenedRule(Rule):
    """A container that two functions take apart and put together.

    Args:
        flatten: Returns the children and whatever else the other function needs.
        unflatten: Takes new children and the rest, and returns a new container.
    """

    def __init__(
        self,
        flatten: Callable[[Any], tuple[Iterable[Any], Any]],
        unflatten: Callable[[Sequence[Any], Any], Any],
    ) -> None:
        self._flatten = flatten
        self._unflatten = unflatten

    def children(self, value: Any) -> Sequence[Any]:
        """Return what *flatten* gives."""
        return tuple(self._flatten(value)[0])

    def build(self, value: Any, shell: Any, children: Sequence[Any]) -> Any:
        """Call *unflatten*."""
        del shell
        return self._unflatten(list(children), self._flatten(value)[1])


class Registrations:
    """Containers by their class; a subclass is handled as its nearest registered base is."""

    def __init__(self) -> None:
        self._rules: dict[type, Rule] = {}
        self._lock = threading.Lock()
        self.generation: int = 0
        rearm_after_fork(self)

    def add(self, kind: type, rule: Rule) -> None:
        """Handle instances of *kind* by *rule*, which replaces an earlier one.

        Raises:
            RegistrationError: It is no class, or one that has to stay as it is.
        """
        if not isinstance(kind, type):
            raise RegistrationError(repr(kind), "it is no class")
        if kind in BUILTIN_RULES or kind.__module__ == "builtins":
            raise RegistrationError(kind.__qualname__, "the builtin types are handled already")
        with self._lock:
            self._rules[kind] = rule
            self.generation += 1

    def remove(self, kind: type) -> None:
        """Forget *kind*.

        Raises:
            RegistrationError: It is not registered.
        """
        with self._lock:
            if self._rules.pop(kind, None) is None:
                raise RegistrationError(repr(kind), "it is not registered")
            self.generation += 1

    def find(self, kind: type) -> Rule | None:
        """Return the rule of *kind*, or of the nearest of its bases that has one."""
        if not self._rules:
            return None
        return next((self._rules[each] for each in kind.__mro__ if each in self._rules), None)

    def after_fork(self) -> None:
        """Take a lock of its own in a forked child."""
        self._lock = threading.Lock()


_registrations = Registrations()


def default_registrations() -> Registrations:
    """Return the containers that were registered in this process."""
    return _registrations


def register_container(
    kind: type,
    flatten: Callable[[Any], tuple[Iterable[Any], Any]] | None = None,
    unflatten: Callable[[Sequence[Any], Any], Any] | None = None,
) -> None:
    """Say how `tensors_to_device` moves what instances of a class hold.

    Args:
        kind: The class; subclasses follow it unless they have a registration of their own.
        flatten: Returns ``(children, context)`` of an instance, as for torch's pytree.
        unflatten: Takes ``(children, context)`` and returns a new instance. Where both are left
            out, an instance is copied without calling its constructor, and all its attributes are
            looked into.

    Raises:
        RegistrationError: It is no class, a builtin one, or only one function is given.

    Examples:
        >>> class Batch:
        ...     def __init__(self, image):
        ...         self.image = image
        >>> register_container(Batch)
        >>> unregister_container(Batch)
    """
    if (flatten is None) != (unflatten is None):
        raise RegistrationError(repr(kind), "it needs both functions or none")
    rule = (
        ObjectRule() if flatten is None or unflatten is None else FlattenedRule(flatten, unflatten)
    )
    _registrations.add(kind, rule)


def unregister_container(kind: type) -> None:
    """Undo `register_container`.

    Raises:
        RegistrationError: The class is not registered.
    """
    _registrations.remove(kind)


def pytree_rule(kind: type) -> Rule | None:
    """Return how torch's pytree or optree handles exactly this class, if one of them does."""
    torch_nodes = getattr(sys.modules.get("torch.utils._pytree"), "SUPPORTED_NODES", {})
    if (node := torch_nodes.get(kind)) is not None:
        return FlattenedRule(node.flatten_fn, node.unflatten_fn)
    # Under whichever namespace: optree has hardly a public way to register without one.
    entries = getattr(sys.modules.get("optree.registry"), "_NODETYPE_REGISTRY", {})
    entry = next((each for each in tuple(entries.values()) if each.type is kind), None)
    if entry is None:
        return None

    def unflatten(children: Sequence[Any], context: Any) -> Any:
        return entry.unflatten_func(context, children)

    return FlattenedRule(lambda value: entry.flatten_func(value)[:2], unflatten)
