"""Finds, copies and replaces the arrays in the arguments and results of a call."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from devicecore.frameworks import class_in

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

# Looked into are only these themselves: what else a program has may run its code when it is read.
_CONTAINERS = (list, tuple)


def is_array(value: Any) -> bool:
    """Return whether a value is an array of numpy, or of a class derived from it."""
    numpy = sys.modules.get("numpy")
    return numpy is not None and isinstance(value, numpy.ndarray)


def is_tensor(value: Any) -> bool:
    """Return whether a value is a tensor of torch."""
    return isinstance(value, class_in("torch", "Tensor"))


def find_arrays(value: Any) -> Iterator[Any]:
    """Yield the arrays and tensors that a value is or that lists, tuples and dicts in it have."""
    yield from _arrays_in(value, set())


def _arrays_in(value: Any, seen: set[int]) -> Iterator[Any]:
    if id(value) in seen:
        return
    if is_array(value) or is_tensor(value):
        seen.add(id(value))
        yield value
    elif isinstance(value, _CONTAINERS) or type(value) is dict:
        seen.add(id(value))
        for each in _members(value):
            yield from _arrays_in(each, seen)


def _members(value: Any) -> Iterator[Any]:
    """Return the members of a container, without running code of a derived class."""
    if type(value) is dict:
        return iter(value.values())
    return tuple.__iter__(value) if isinstance(value, tuple) else list.__iter__(value)


def copy_arrays(value: Any) -> Any:
    """Return a value with copies in the place of all arrays that `find_arrays` finds in it."""
    return replace_arrays(value, _copy)


def move_to_host(value: Any) -> Any:
    """Return a value with its tensors on the host."""
    return replace_arrays(value, lambda array: array.detach().cpu() if is_tensor(array) else array)


def _copy(array: Any) -> Any:
    return array.detach().clone() if is_tensor(array) else array.copy(order="K")


def replace_arrays(value: Any, replace: Callable[[Any], Any]) -> Any:
    """Return a value with something else in the place of each array; containers are new ones."""
    if is_array(value) or is_tensor(value):
        return replace(value)
    if type(value) is dict:
        return {key: replace_arrays(each, replace) for key, each in value.items()}
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(replace_arrays(each, replace) for each in value))
    if type(value) in _CONTAINERS:
        return type(value)(replace_arrays(each, replace) for each in value)
    return value


def count_pixels(args: Sequence[Any], kwargs: Mapping[str, Any]) -> int:
    """Return the pixels of the first image among arguments; 0 if there is none."""
    for array in find_arrays([*args, *kwargs.values()]):
        if array.ndim > 1:
            # A tensor has its channels first.
            height, width = array.shape[-2:] if is_tensor(array) else array.shape[:2]
            return int(height * width)
    return 0


class SavedContents:
    """Saves the contents of the arrays of a call, to restore them.

    Args:
        args: The arguments.
        kwargs: More of them.
    """

    def __init__(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
        self._kept = [
            (array, copy_arrays(array)) for array in find_arrays([*args, *kwargs.values()])
        ]

    def put_back(self) -> None:
        """Undo what was written into the arrays since."""
        for array, before in self._kept:
            is_writable = is_tensor(array) or array.flags.writeable
            # Others may read it meanwhile, so that nothing is written without need.
            if is_writable and not _has_same_bytes(array, before):
                place = array.detach() if is_tensor(array) else array
                place[...] = before


def _has_same_bytes(array: Any, before: Any) -> bool:
    if is_tensor(array):
        return bool(array.equal(before))
    return bool(array.tobytes() == before.tobytes())
