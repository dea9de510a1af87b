"""A structure like another one, with some leaves replaced; what holds none of them stays itself."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

from devicecore.transfer.errors import TransferError

if TYPE_CHECKING:
    from devicecore.transfer.scan import Found

_FIX = "say how it is made with devicecore.transfer.register_container"


def rebuild(found: Found, moved: dict[int, Any]) -> Any:
    """Return the structure with new leaves.

    Args:
        found: What a walk has found.
        moved: The new leaves, by the id of the old ones.

    Raises:
        TransferError: A container cannot be made anew.
    """
    done = dict(moved)
    changed = _changed(found, moved)
    root = id(found.root)
    if root in changed:
        _Builder(found, changed, done).build(root)
    return done.get(root, found.root)


def _changed(found: Found, moved: dict[int, Any]) -> set[int]:
    """Return the containers that hold a moved leaf, themselves or through others."""
    holders: defaultdict[int, list[int]] = defaultdict(list)
    changed: set[int] = set()
    for key, (_, _, children) in found.containers.items():
        for child in children:
            child_key = id(child)
            if child_key in moved:
                changed.add(key)
            elif child_key in found.containers:
                holders[child_key].append(key)
    waiting = list(changed)
    while waiting:
        for holder in holders[waiting.pop()]:
            if holder not in changed:
                changed.add(holder)
                waiting.append(holder)
    return changed


class _Builder:
    """Makes containers from the inside out, without recursion."""

    def __init__(self, found: Found, changed: set[int], done: dict[int, Any]) -> None:
        self._found = found
        self._changed = changed
        self._done = done
        self._open: dict[int, Any] = {}  # each with its shell

    def build(self, root: int) -> None:
        """Make *root*, and everything in it that changes."""
        waiting = [root]
        while waiting:
            key = waiting[-1]
            if key in self._open:
                waiting.pop()
                self._close(key)
            elif key in self._done:
                waiting.pop()
            else:
                waiting.extend(self._enter(key))

    def _enter(self, key: int) -> list[int]:
        """Make the shell of a container, and return what has to be made before it is filled."""
        value, rule, children = self._found.containers[key]
        try:
            shell = rule.shell(value)
        except Exception as error:
            raise self._error(key, error) from error
        self._open[key] = shell
        if shell is not None:
            self._done[key] = shell
        first = []
        for child in children:
            child_key = id(child)
            if child_key in self._changed and child_key not in self._done:
                if child_key in self._open:
                    reason = "it holds itself, and can only be made as a whole"
                    raise TransferError(self._found.path_to(child), reason, _FIX)
                first.append(child_key)
        return first

    def _close(self, key: int) -> None:
        value, rule, children = self._found.containers[key]
        new = [self._done.get(id(child), child) for child in children]
        try:
            self._done[key] = rule.build(value, self._open.pop(key), new)
        except Exception as error:
            raise self._error(key, error) from error

    def _error(self, key: int, error: Exception) -> TransferError:
        value = self._found.containers[key][0]
        kind = type(value).__qualname__
        reason = f"a {kind} cannot be made anew ({type(error).__name__}: {error})"
        return TransferError(self._found.path_to(value), reason, _FIX)
