"""A structure like another one, with some leaves replaced; what holds none of them stays itself."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

from devicecore.errors import TransferError

if TYPE_CHECKING:
    from collections.abc import Collection

    from devicecore.transfer.scan_result import ScanResult

_FIX = "say how it is made with devicecore.transfer.register_container"


def rebuild(found: ScanResult, moved: dict[int, Any], also: Collection[int] = ()) -> Any:
    """Return the structure with new leaves.

    Args:
        found: What a walk has found.
        moved: The new leaves, by the id of the old ones.
        also: The ids of containers that are made anew in any case.

    Raises:
        TransferError: A container cannot be made anew.
    """
    changed = _changed(found, moved, also)
    root = id(found.root)
    builder = _Builder(found, changed, moved)
    if root in changed:
        try:
            builder.build(root)
        except _HoldsItselfError:
            builder = _Builder(found, changed, moved)
            _build_around_shells(builder, found)
    return builder.done.get(root, found.root)


def _build_around_shells(builder: _Builder, found: ScanResult) -> None:
    try:
        builder.build_around_shells()
    except _HoldsItselfError:
        reason = "it holds itself, and can only be made as a whole"
        raise TransferError(found.path_to(found.root), reason, _FIX) from None


def _changed(found: ScanResult, moved: dict[int, Any], also: Collection[int]) -> set[int]:
    """Return the containers that hold a moved leaf or one of *also*, and those of *also*."""
    holders: defaultdict[int, list[int]] = defaultdict(list)
    changed = set(also)
    for key, (_, _, children) in found.containers.items():
        for child in children:
            child_key = id(child)
            if child_key in moved:
                changed.add(key)
                break  # it changes whatever else is in it
            if child_key in found.containers:
                holders[child_key].append(key)
    waiting = list(changed)
    while waiting:
        for holder in holders[waiting.pop()]:
            if holder not in changed:
                changed.add(holder)
                waiting.append(holder)
    return changed


class _HoldsItselfError(Exception):
    """A container is needed before it can be made."""


class _Builder:
    """Makes containers without recursion, each at most once."""

    def __init__(self, found: ScanResult, changed: set[int], moved: dict[int, Any]) -> None:
        self._found = found
        self._changed = changed
        self.done = dict(moved)
        self._open: dict[int, Any] = {}  # each with its shell

    def build(self, root: int) -> None:
        """Make *root* and everything in it that changes, from the inside out.

        So what is put into a set is whole when it is hashed.

        Raises:
            _HoldsItselfError: A container without a shell is inside of itself.
        """
        waiting = [root]
        while waiting:
            key = waiting[-1]
            if key in self._open:
                waiting.pop()
                self._fill(key, self._open.pop(key))
            elif key in self.done:
                waiting.pop()
            else:
                waiting.extend(self._enter(key))

    def build_around_shells(self) -> None:
        """Make all shells first, then what has none, and fill the shells last.

        Raises:
            _HoldsItselfError: A container is inside of itself without a shell between.
        """
        shells = {key: self._shell(key) for key in self._changed}
        self.done |= {key: shell for key, shell in shells.items() if shell is not None}
        for key in self._changed:
            self.build(key)
        for key, shell in shells.items():
            if shell is not None:
                self._fill(key, shell)

    def _enter(self, key: int) -> list[int]:
        """Make the shell of a container, and return what has to be made before it is filled."""
        shell = self._open[key] = self._shell(key)
        if shell is not None:
            self.done[key] = shell
        children = self._found.containers[key][2]
        if self._changed.isdisjoint(map(id, children)):  # most often there are leaves only
            return []
        keys = map(id, children)
        first = [each for each in keys if each in self._changed and each not in self.done]
        if any(each in self._open for each in first):
            raise _HoldsItselfError
        return first

    def _shell(self, key: int) -> Any:
        value, rule, _ = self._found.containers[key]
        try:
            return rule.shell(value)
        except Exception as error:
            raise self._error(key, error) from error

    def _fill(self, key: int, shell: Any) -> None:
        value, rule, children = self._found.containers[key]
        new = list(map(self.done.get, map(id, children), children))
        try:
            self.done[key] = rule.build(value, shell, new)
        except Exception as error:
            raise self._error(key, error) from error

    def _error(self, key: int, error: Exception) -> TransferError:
        value = self._found.containers[key][0]
        kind = type(value).__qualname__
        reason = f"a {kind} cannot be made anew ({type(error).__name__}: {error})"
        return TransferError(self._found.path_to(value), reason, _FIX)
