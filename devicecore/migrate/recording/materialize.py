"""Replaces lazy arrays by NumPy arrays in what a frame returns or keeps."""

from __future__ import annotations

import gc
from collections import deque
from operator import attrgetter
from types import MethodType
from typing import TYPE_CHECKING, Any, Final

from devicecore.migrate.recording.lazy_array import LazyArray
from devicecore.migrate.recording.operators import replace_members

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from devicecore.migrate.recording.recording import Recording

# Results are looked into so deep, where all arrays are in lists, tuples and dicts.
_MOST_DEEP = 4
# And so deep in objects, and in what else was given to a frame, where it has kept some there.
_DEEPEST = 8
_MOST_MEMBERS = 4096


ORDINARY: Final[dict[type, Callable[[Any], Any]]] = {LazyArray: attrgetter("values")}
"""What gives the ordinary array or tensor for one that stands for it, by its class."""


def materialize(result: Any, recording: Recording, others: Sequence[Any]) -> Any:
    """Return a result with arrays of numpy, whose lists, dicts and objects stay the same ones.

    Args:
        result: What a frame returned.
        recording: That frame.
        others: Objects that it may have kept arrays in: its arguments.
    """
    result = _put(result, _MOST_DEEP)
    if recording.alive():
        seen: set[int] = set()
        result = _put_deep(result, _DEEPEST, seen)
        for other in others:
            if not recording.alive():
                break
            _put_deep(other, _DEEPEST, seen)
    return result


def find_kept(recording: Recording) -> Sequence[Any]:
    """Return the memory of arrays that somebody outside of a frame has, who cannot be found."""
    if recording.alive():
        gc.collect(1)  # perhaps they are in objects that have each other, and nobody else does
    return recording.alive()


def _put(value: Any, depth: int) -> Any:
    if type(value) in ORDINARY:
        return ORDINARY[type(value)](value)
    if depth == 0:
        return value
    if isinstance(value, tuple):
        return replace_members(value, [_put(each, depth - 1) for each in tuple.__iter__(value)])
    if type(value) is list:
        _put_into(value, enumerate(value), depth)
    elif type(value) is dict:
        _put_into(value, value.items(), depth)
    return value


def _put_into(container: Any, members: Iterable[tuple[Any, Any]], depth: int) -> None:
    for key, each in members:
        if (found := _put(each, depth - 1)) is not each:
            container[key] = found  # of a key that is there, so that the loop may go on


def _put_deep(value: Any, depth: int, seen: set[int]) -> Any:
    """Do the same in objects of all classes."""
    if type(value) in ORDINARY:
        return ORDINARY[type(value)](value)
    if depth == 0 or id(value) in seen or type(value).__module__ in _FOREIGN:
        return value
    if type(value) is MethodType:
        _put_deep(value.__self__, depth - 1, seen)
        return value
    if isinstance(value, tuple):
        members = [_put_deep(each, depth - 1, seen) for each in tuple.__iter__(value)]
        return replace_members(value, members)
    seen.add(id(value))
    if isinstance(value, (list, deque)) and len(value) <= _MOST_MEMBERS:
        _replace(value, enumerate(value), depth, seen)
    elif isinstance(value, dict) and len(value) <= _MOST_MEMBERS:
        _replace(value, value.items(), depth, seen)
    if type(value) not in _PLAIN:
        _replace_attributes(value, depth, seen)
    return value


def _replace(
    container: Any, members: Iterable[tuple[Any, Any]], depth: int, seen: set[int]
) -> None:
    for key, each in list(members):
        if (found := _put_deep(each, depth - 1, seen)) is not each:
            container[key] = found


def _replace_attributes(value: Any, depth: int, seen: set[int]) -> None:
    attributes = getattr(value, "__dict__", None)
    if type(attributes) is dict and len(attributes) <= _MOST_MEMBERS:
        _replace(attributes, attributes.items(), depth, seen)
    for name in _slots(type(value)):
        each = getattr(value, name, None)
        if (found := _put_deep(each, depth - 1, seen)) is not each:
            object.__setattr__(value, name, found)


def _slots(own: type) -> Iterable[str]:
    for each in own.__mro__:
        names = each.__dict__.get("__slots__", ())
        yield from (names,) if isinstance(names, str) else names


_PLAIN = frozenset({int, float, bool, str, bytes, type(None), list, dict})
# Objects of these have none.
_FOREIGN = frozenset({"devicecore.migrate.loader.placeholders", "numpy", "torch"})
