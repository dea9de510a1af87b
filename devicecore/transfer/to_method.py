"""Objects that move themselves with a ``to``, and what has to be copied before they may."""

from __future__ import annotations

import copy
import enum
import inspect
import sys
from typing import TYPE_CHECKING, Any

from devicecore.errors import TransferError
from devicecore.frameworks.base.leaf import LeafKind, MoveFailedError, OneByOne
from devicecore.transfer.attributes import attributes_of, set_attributes
from devicecore.transfer.containers import BUILTIN_RULES, Rule
from devicecore.transfer.objects import ObjectRule, SubclassRule
from devicecore.transfer.other_leaves import Modules, NumpyArrays
from devicecore.transfer.rebuild import rebuild
from devicecore.transfer.scan_result import ScanResult

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from devicecore.transfer.request import Request

_BUILTIN = frozenset(BUILTIN_RULES.values())


class CopiedRule(ObjectRule):
    """An object that is copied in its own way, and then holds copies of what the original holds."""

    def shell(self, value: Any) -> Any:
        """Return a shallow copy.

        Raises:
            TypeError: It gives itself for one.
        """
        made = copy.copy(value)
        if made is value:
            msg = f"a copy of a {type(value).__qualname__} is itself"
            raise TypeError(msg)
        return made

    def build(self, value: Any, shell: Any, children: Sequence[Any]) -> Any:
        """Give it the copies, but for those that it has made itself."""
        shared = attributes_of(shell)
        for (name, old), new in zip(attributes_of(value).items(), children, strict=True):
            if new is not old and shared.get(name) is old:
                set_attributes(shell, [name], [new])
        return shell


_COPIED = CopiedRule()


class ObjectsWithTo(OneByOne):
    """Objects with a method ``to`` that takes a device, such as those of other libraries.

    Args:
        kind_of: Returns the kind of a value, None for what is neither container nor leaf.
        has_device: Whether only those are meant that have an attribute ``device``.
    """

    holds_others = True

    def __init__(
        self, kind_of: Callable[[Any], Rule | LeafKind | None], *, has_device: bool = False
    ) -> None:
        self._kind_of = kind_of
        self._has_device = has_device

    def is_elsewhere(self, value: Any, request: Request) -> bool:
        """Return whether it has to be asked: unless all that one finds in it is there."""
        if self.leaves_alone(value):
            return False
        found, _ = self._look_inside(value)
        telling = [
            (kind, leaf)
            for kind, leaves in found.leaves.items()
            if not isinstance(kind, NumpyArrays)
            for leaf in leaves.values()
        ]
        return not telling or any(kind.is_elsewhere(leaf, request) for kind, leaf in telling)

    def leaves_alone(self, value: Any) -> bool:
        """Return whether nothing says that the ``to`` of *value* is about devices."""
        return self._has_device and inspect.getattr_static(value, "device", None) is None

    def move_one(self, value: Any, request: Request) -> Any:
        """Ask a copy; one that returns nothing has moved itself."""
        where = request.target.torch_device or request.target.name
        copied = self._copied(value, request)
        parameter = inspect.signature(type(value).to).parameters.get("device")
        if parameter is not None and parameter.kind is parameter.KEYWORD_ONLY:
            moved = copied.to(device=where)
        else:
            moved = copied.to(where)
        return copied if moved is None else moved

    def _copied(self, value: Any, request: Request) -> Any:
        """Return a copy that may change whatever it holds, but for its tensors."""
        found, own = self._look_inside(value)
        for kind, leaves in found.leaves.items():
            if isinstance(kind, Modules):
                elsewhere = [each for each in leaves.values() if kind.is_elsewhere(each, request)]
                try:
                    kind.move(elsewhere, request)
                except MoveFailedError as failed:
                    path = found.path_to(elsewhere[failed.position])
                    cause = failed.cause
                    assert isinstance(cause, TransferError)
                    raise TransferError(path, cause.reason, cause.fix) from None
        same = {key: leaf for leaves in found.leaves.values() for key, leaf in leaves.items()}
        return rebuild(found, same, own)

    def _look_inside(self, value: Any) -> tuple[ScanResult, set[int]]:
        """Return all that *value* holds, and which containers are so by no other object."""
        found = ScanResult(value, name="")
        own = {id(value)}
        waiting: list[Any] = [value]
        others: list[Any] = []
        while waiting or others:
            is_own = bool(waiting)
            each = (waiting or others).pop()
            rule = self._take(each, found)
            if rule is None:
                continue
            if is_own and (rule in _BUILTIN or isinstance(rule, SubclassRule)):
                own.add(id(each))
            goes_on = is_own and (rule is not _COPIED or each is value)
            (waiting if goes_on else others).extend(found.containers[id(each)][2])
        return found, own

    def _take(self, value: Any, found: ScanResult) -> Rule | None:
        """Take a container or a leaf down; return the rule of a container that is new."""
        kind, key = self._kind_of(value), id(value)
        if key in found.containers or (kind is None and not _is_plain(value)):
            return None
        if isinstance(kind, LeafKind) and not isinstance(kind, ObjectsWithTo):
            found.leaves.setdefault(kind, {})[key] = value
            return None
        rule = kind if isinstance(kind, Rule) else _COPIED
        try:
            found.containers[key] = (value, rule, rule.children(value))
        except Exception:  # noqa: BLE001 - then its `to` will hardly look into it either
            return None
        return rule


def _is_plain(value: Any) -> bool:
    """Return whether it is an object that may hold anything, and belongs to whoever holds it.

    Loggers, threads and the like of Python belong to everybody.
    """
    home = type(value).__module__.partition(".")[0]
    return home not in sys.stdlib_module_names and not isinstance(value, (type, enum.Enum))
