"""`Checkpoint`: saves what a frame may change, and restores it before the frame runs again."""

from __future__ import annotations

import random
import sys
from operator import is_
from types import MethodType, ModuleType
from typing import TYPE_CHECKING, Any

from devicecore.frameworks import loaded
from devicecore.migrate.calls.arrays import SavedContents

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    Undo = tuple[Callable[[Any], Any], Any]

# Objects are looked into so deep: a pipeline has steps, and those have their own steps.
_MOST_DEEP = 5
# Longer lists and dicts are data, and not steps; there are frames for each of a million files.
_MOST_MEMBERS = 64
_LARGEST_BYTES = 1 << 14


class Checkpoint:
    """The arguments of a frame and the random state, as they are before it runs.

    Of objects that are the attributes, of lists and dicts what is in them, and of small arrays the
    values. Random numbers are Python's, numpy's, torch's on the host, and those of generators that
    the objects have, as the transforms of albumentations do.

    Args:
        args: The arguments of the frame.
        kwargs: More of them.
    """

    def __init__(self, args: Sequence[Any], kwargs: dict[str, Any]) -> None:
        self._contents = SavedContents(args, kwargs)
        self._undo = list(_undo([*args, *kwargs.values()]))

    def put_back(self) -> None:
        """Undo what became of them since."""
        self._contents.put_back()
        for undo, before in self._undo:
            undo(before)


def _undo(values: Sequence[Any]) -> Iterator[Undo]:
    """Yield what puts each of them back, and what it has to be given."""
    yield random.setstate, random.getstate()
    numpy: Any = sys.modules.get("numpy")
    if numpy is not None:
        from devicecore.migrate.recording.numpy_state import numpy_state  # it imports numpy

        yield numpy.random.set_state, numpy_state()
    torch = loaded("torch")
    if torch is not None and hasattr(torch, "get_rng_state"):
        yield torch.set_rng_state, torch.get_rng_state()
    for found in _objects(values):
        if type(found) is list:
            yield _Put(found).members, found.copy()
        elif type(found) is dict:
            yield _Put(found).items, found.copy()
        elif isinstance(found, random.Random):
            yield found.setstate, found.getstate()
        else:
            yield from _undo_numpys(numpy, found)


def _undo_numpys(numpy: Any, found: Any) -> Iterator[Undo]:
    if isinstance(found, numpy.random.RandomState):
        yield found.set_state, found.get_state()
    elif isinstance(found, numpy.random.Generator):
        yield _Put(found.bit_generator).state, found.bit_generator.state
    elif type(found) is numpy.ndarray and found.nbytes <= _LARGEST_BYTES:
        yield _Put(found).values, found.copy()


class _Put:
    """Puts something back into an object."""

    __slots__ = ("_object",)

    def __init__(self, found: Any) -> None:
        self._object = found

    def state(self, before: Any) -> None:
        """Put a generator's state back."""
        self._object.state = before

    def members(self, before: list[Any]) -> None:
        """Put the members of a list back."""
        own = self._object
        if len(own) != len(before) or not all(map(is_, own, before)):
            own[:] = before

    def items(self, before: dict[Any, Any]) -> None:
        """Put the items of a dict back; others may read it meanwhile."""
        own = self._object
        for key in own.keys() - before.keys():
            del own[key]
        for key, value in before.items():
            if key not in own or own[key] is not value:
                own[key] = value

    def values(self, before: Any) -> None:
        """Put the values of an array back."""
        if self._object.flags.writeable and self._object.tobytes() != before.tobytes():
            self._object[...] = before


def _objects(values: Sequence[Any]) -> Iterator[Any]:
    """Yield generators, arrays, and the lists, dicts and attributes of what is among values."""
    seen: set[int] = set()
    level: list[Any] = [each.__self__ if type(each) is MethodType else each for each in values]
    for _ in range(_MOST_DEEP):
        below: list[Any] = []
        for value in level:
            if type(value) in _PLAIN or id(value) in seen:
                continue
            seen.add(id(value))
            members = _members(value)
            if members is value or type(value) not in _CONTAINERS:
                yield value
            if members is not value and type(members) is dict:  # an object's attributes
                yield members
            below += members.values() if type(members) is dict else members
        level = below


def _members(value: Any) -> Any:
    """Return what is in a list, a tuple, a dict or an object; nothing of what is data or code."""
    if type(value) in _CONTAINERS:
        return value if len(value) <= _MOST_MEMBERS else ()
    attributes = () if isinstance(value, _NO_OBJECTS) else getattr(value, "__dict__", ())
    return attributes if type(attributes) is dict else ()


_CONTAINERS = frozenset({list, tuple, dict})
_PLAIN = frozenset({int, float, bool, str, bytes, type(None)})
# Modules and classes have much that a frame does not change.
_NO_OBJECTS = (type, ModuleType)
