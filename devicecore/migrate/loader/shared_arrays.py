"""Read-only dataset arrays: forked workers share them copy-on-write, so only offsets are sent."""

from __future__ import annotations

import uuid
from bisect import bisect_right
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakValueDictionary

import numpy as np

from devicecore.migrate.recording.nodes import Node, make_source
from devicecore.migrate.recording.snapshots import is_frozen, readable

if TYPE_CHECKING:
    from collections.abc import Iterator

    Array = np.ndarray[Any, Any]

# Containers in containers are looked into so deep.
_MOST_DEEP = 3
_CONTAINERS = (list, tuple)


class SharedArrays:
    """The read-only arrays of a dataset, which stay in place while this object lives.

    Args:
        dataset: The dataset.
        is_immutable: Whether that are all of them, and not only those that are read-only.
    """

    def __init__(self, dataset: Any, *, is_immutable: bool = False) -> None:
        self._is_immutable = is_immutable
        found = {_start(each): each for each in _arrays(dataset) if self._is_fixed(each)}
        self.name: Final = uuid.uuid4().hex
        self._starts = sorted(found)
        self._arrays = [found[start] for start in self._starts]
        _known[self.name] = self

    def node(self, array: Array) -> SharedArrayNode | None:
        """Return the value of an array that lies in one of these; None if it does not."""
        if not self._is_fixed(array):
            return None
        start = _start(array)
        index = bisect_right(self._starts, start) - 1
        if index < 0:
            return None
        offset = start - self._starts[index]
        if offset + array.nbytes > self._arrays[index].nbytes:
            return None
        return SharedArrayNode(self, index, offset, array.shape, array.dtype)

    def _is_fixed(self, array: Array) -> bool:
        is_whole = array.flags.c_contiguous and not array.dtype.hasobject
        return is_whole and (self._is_immutable or is_frozen(array))

    def view(self, index: int, offset: int, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
        """Return the array that lies in one of these."""
        whole = readable(self._arrays[index]).reshape(-1).view(np.uint8)
        return np.ndarray(shape, dtype, whole, offset)


class SharedArrayNode(Node):
    """A recorded value that is part of a shared array.

    Args:
        shared: The dataset's arrays.
        index: Which of them.
        offset: Where it begins there, in bytes.
        shape: Its shape.
        dtype: Its type.
    """

    __slots__ = ("_place",)

    def __init__(
        self,
        shared: SharedArrays,
        index: int,
        offset: int,
        shape: tuple[int, ...],
        dtype: np.dtype[Any],
    ) -> None:
        array = shared.view(index, offset, shape, dtype)
        super().__init__(make_source(array).expr, (), array)
        self._place = (shared.name, index, offset, shape, dtype)

    def __reduce__(self) -> Any:
        return _again, self._place


_known: WeakValueDictionary[str, SharedArrays] = WeakValueDictionary()


def _again(name: str, *place: Any) -> SharedArrayNode:
    return SharedArrayNode(_known[name], *place)


def _start(array: Array) -> int:
    address: int = array.__array_interface__["data"][0]
    return address


def _arrays(dataset: Any) -> Iterator[Array]:
    """Yield the arrays among the attributes of a dataset."""
    level = list(getattr(dataset, "__dict__", {}).values())
    for _ in range(_MOST_DEEP):
        below: list[Any] = []
        for value in level:
            if isinstance(value, np.ndarray):
                yield value
            elif type(value) in _CONTAINERS:
                below += value
            elif type(value) is dict:
                below += value.values()
        level = below
