"""Arrays of numpy that hold objects, which may be tensors: containers with a shape."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from devicecore.transfer.containers import Rule

if TYPE_CHECKING:
    from collections.abc import Sequence


class ObjectArrayRule(Rule):
    """An array whose elements, or some fields of them, are objects."""

    def children(self, value: Any) -> Sequence[Any]:
        """Return the objects, in the order of the array, field after field."""
        return [item for part in object_parts(value) for item in part.ravel()]

    def shell(self, value: Any) -> Any:
        """Return a copy of the array, which still holds the same objects."""
        return value.copy(order="K")

    def build(self, value: Any, shell: Any, children: Sequence[Any]) -> Any:
        """Put the objects into the copy."""
        del value
        numpy, start = sys.modules["numpy"], 0
        for part in object_parts(shell):
            items = numpy.empty(part.size, dtype=object)
            for position in range(part.size):  # all at once, numpy would read lists and tensors
                items[position] = children[start + position]
            numpy.copyto(part, items.reshape(part.shape))
            start += part.size
        return shell

    def step(self, value: Any, position: int) -> str:
        """Return the field and the index in brackets."""
        for name, part in _named_parts(_plain(value)):
            if position < part.size:
                where = sys.modules["numpy"].unravel_index(position, part.shape)
                index = ", ".join(str(int(each)) for each in where)
                return f"{name}[{index or '()'}]"
            position -= part.size
        return f"[{position}]"


def object_parts(array: Any) -> list[Any]:
    """Return views of everything in *array* that is objects: all of it, or fields."""
    return [part for _, part in _named_parts(_plain(array))]


def _plain(array: Any) -> Any:
    return array.view(sys.modules["numpy"].ndarray)  # a subclass may hide elements, or make some


def _named_parts(array: Any, name: str = "") -> list[tuple[str, Any]]:
    if array.dtype == object:
        return [(name, array)]
    return [
        part
        for field in array.dtype.names or ()
        if array.dtype[field].hasobject
        for part in _named_parts(array[field], f"{name}[{field!r}]")
    ]
