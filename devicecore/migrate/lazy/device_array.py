"""`DeviceArray`: stands for an array of numpy whose values are elsewhere, or not yet computed.

It is no ndarray, so that nothing written in C can read memory that has no values: such code raises
an error, and then the frame runs anew without us. To Python it says that it is one. What is not
recorded here is done by numpy itself, with the values, which then stay on the host for good.
"""

from __future__ import annotations

from copy import deepcopy
from functools import cache
from itertools import permutations
from operator import is_
from typing import TYPE_CHECKING, Any, Final, Protocol

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from devicecore.migrate.lazy import tables
from devicecore.migrate.lazy.array_operations import (
    ARITHMETIC,
    COPY,
    INDEX,
    POINTWISE,
    TRANSPOSE,
    View,
    index_of,
)
from devicecore.migrate.lazy.nodes import Slot, called, source

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from devicecore.migrate.lazy.nodes import Node

    Array = np.ndarray[Any, Any]

_FIRST: Final = Slot(0)
_SECOND: Final = Slot(1)
# Longer tables have more entries than an image has pixels.
_MOST_COLUMNS: Final = 64


class Frame(Protocol):
    """What keeps account of the arrays of one frame."""

    def fetch(self, node: Node) -> Array:
        """Return values as an array of numpy, in memory of its own."""
        ...

    def watch(self, memory: Memory) -> None:
        """Remember that such an array was made."""


class Memory:
    """What several arrays share that are views of one: its values, wherever they are.

    Args:
        node: The values of the whole.
        frame: Where they come from.

    Attributes:
        node: The values, as long as they are not on the host.
        host: The array on the host, once anything of it was there. From then on it is the only one
            that counts, and others may write into it.
    """

    __slots__ = ("__weakref__", "_frame", "host", "node")

    def __init__(self, node: Node, frame: Frame) -> None:
        self.node = node
        self.host: Array | None = None
        self._frame: Final = frame
        frame.watch(self)

    def on_host(self) -> Array:
        """Return the array on the host."""
        if self.host is None:
            self.host = self._frame.fetch(self.node)
        return self.host

    def another(self, node: Node) -> DeviceArray:
        """Return an array with values of its own, of the same frame."""
        return DeviceArray(Memory(node, self._frame))


class DeviceArray(NDArrayOperatorsMixin):
    """An array whose values are elsewhere.

    Args:
        memory: Its values, shared with its views.
        views: What leads from the whole to this part of it, and its order of axes.
        axes: Which axis of what lies in memory each axis is.
    """

    __slots__ = ("__weakref__", "_axes", "_memory", "_views", "dtype", "shape")

    def __init__(
        self,
        memory: Memory,
        views: tuple[tuple[View, Any], ...] = (),
        axes: tuple[int, ...] | None = None,
    ) -> None:
        self._memory = memory
        self._views = views
        node = self.node if views else memory.node
        self.shape: tuple[int, ...] = node.kind.shape
        self.dtype: np.dtype[Any] = node.kind.dtype
        self._axes = axes

    @property  # type: ignore[misc]
    def __class__(self) -> Any:  # programs ask isinstance before they use it
        return np.ndarray

    @property
    def node(self) -> Node:
        """Its values, as of now."""
        memory = self._memory
        node = memory.node if memory.host is None else source(memory.host.copy())
        for view, how in self._views:
            node = _recorded(called(view, (_FIRST, how), {}, (node,)))
        return node

    @property
    def is_on_host(self) -> bool:
        """Whether its values are on the host, where others may write into them."""
        return self._memory.host is not None

    @property
    def is_view(self) -> bool:
        """Whether it is part of another array, or has its axes in another order."""
        return bool(self._views)

    @property
    def values(self) -> Array:
        """The array on the host; from now on it is there."""
        array = self._memory.on_host()
        for view, how in self._views:
            array = view.on_host([array, how], {})
        return array

    @property
    def ndim(self) -> int:
        """How many axes it has."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """How many values it has."""
        return int(np.prod(self.shape))

    @property
    def itemsize(self) -> int:
        """The bytes of one value."""
        return self.dtype.itemsize

    @property
    def nbytes(self) -> int:
        """The bytes of all values."""
        return self.size * self.dtype.itemsize

    @property
    def T(self) -> Any:  # noqa: N802 - numpy's name
        """The array with its axes in reverse order."""
        return self.transpose()

    def transpose(self, *axes: Any) -> Any:
        """Return a view with the axes in another order."""
        given = axes[0] if len(axes) == 1 and not isinstance(axes[0], int) else axes
        ndim = self.ndim
        straight = tuple(range(ndim))
        wanted = tuple(given) if given else straight[::-1]
        if wanted not in _orders(ndim):
            if sorted(axis % ndim for axis in wanted) != list(straight):
                return self.values.transpose(*axes)  # it raises an error
            wanted = tuple(axis % ndim for axis in wanted)
        before = self._axes
        axes = wanted if before is None else tuple([before[axis] for axis in wanted])
        views = self._views
        if views and views[-1][0] is TRANSPOSE:
            *rest, (_, last) = views
            views, wanted = tuple(rest), tuple([last[axis] for axis in wanted])
        if wanted != straight:
            views = (*views, (TRANSPOSE, wanted))
        return DeviceArray(self._memory, views, axes)

    def __getitem__(self, key: Any) -> Any:
        how = None if self.is_on_host else index_of(key, self.ndim)
        if how is None or (self._axes is not None and not _keeps_axes(how)):
            return self.values[key]
        node = called(INDEX, (_FIRST, how), {}, (self.node,))
        if node is None or not node.kind.shape:
            return self.values[key]
        return DeviceArray(self._memory, (*self._views, (INDEX, how)), self._axes)

    def __setitem__(self, key: Any, value: Any) -> None:
        self.values[key] = value

    def __len__(self) -> int:
        return self.shape[0]

    def __iter__(self) -> Iterator[Any]:
        return iter(self.values)

    def __bool__(self) -> bool:
        return bool(self.values)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        if copy:
            return np.array(self.values, dtype, copy=True)
        return np.asarray(self.values, dtype)

    def __array_ufunc__(self, function: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        out = kwargs.pop("out", None)
        if method == "__call__" and not kwargs and (out is None or _is_own(out)):
            found = self._computed(function.__name__, inputs)
            if found is not None and out is None:
                return found
            if found is not None and out[0].take_values_of(found):
                return out[0]
        named = hosted(kwargs) if out is None else {"out": hosted(out), **hosted(kwargs)}
        found = getattr(function, method)(*hosted(inputs), **named)
        return found if out is None else out[0] if len(out) == 1 else out

    def __array_function__(
        self, function: Any, types: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        del types
        own = _FUNCTIONS.get(function)
        if own is not None and args and type(args[0]) is DeviceArray:
            try:
                return own(*args, **kwargs)
            except (TypeError, ValueError, IndexError):  # for numpy to say, or to do
                pass
        return function(*hosted(args), **hosted(kwargs))

    def astype(self, dtype: Any, *args: Any, **kwargs: Any) -> Any:
        """Return the values in another type."""
        if not args and not kwargs:
            wanted = np.dtype(dtype)
            found = self.stepped("astype", (wanted.name,)) if wanted.isnative else None
            if found is not None:
                return found
        return self.values.astype(dtype, *args, **kwargs)

    def clip(self, *args: Any, **kwargs: Any) -> Any:
        """Return the values between two limits."""
        if len(args) == len(("low", "high")) and not kwargs:
            found = self.stepped("clip", (None, *args))
            if found is not None:
                return found
        return self.values.clip(*args, **kwargs)

    def copy(self, order: str = "C") -> Any:
        """Return the values in memory of their own."""
        if order != "C" or self.is_on_host:
            return self.values.copy(order=order)  # type: ignore[arg-type]
        return self._memory.another(_recorded(called(COPY, (_FIRST,), {}, (self.node,))))

    def contiguous(self) -> Any:
        """Return an array of C's order: this one, if it is of that."""
        if self.is_on_host:
            return np.ascontiguousarray(self.values)
        return self.copy() if self._views else self

    def __copy__(self) -> Any:
        return self.copy()

    def __deepcopy__(self, memo: Any) -> Any:
        return deepcopy(self.values, memo) if self.is_on_host else self.copy()

    def __reduce_ex__(self, protocol: Any) -> Any:
        return self.values.__reduce_ex__(protocol)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.values, name)

    def __repr__(self) -> str:
        return repr(self.values)

    def __str__(self) -> str:
        return str(self.values)

    def __format__(self, wanted: str) -> str:
        return format(self.values, wanted)

    def _computed(self, name: str, inputs: Sequence[Any]) -> DeviceArray | None:
        """Return what a function of numpy gives; None if that is not recorded."""
        own = [each for each in inputs if type(each) is DeviceArray]
        if any(each.is_on_host for each in own):
            return None
        if len(own) == 1:
            array = own[0]
            constants = tuple(None if each is array else each for each in inputs)
            found = array.stepped(_NAMES.get(name, name), constants)
            if found is not None:
                return found
        operation = ARITHMETIC.get(_NAMES.get(name, name))
        if operation is None or any(each.is_view for each in own) or not _are_numbers(inputs):
            return None
        slots = iter(map(Slot, range(len(own))))
        args = [next(slots) if type(each) is DeviceArray else _kept(each) for each in inputs]
        node = called(operation, args, {}, [each.node for each in own])
        return None if node is None else self._memory.another(node)

    def stepped(self, function: str, constants: tuple[Any, ...]) -> DeviceArray | None:
        """Return what becomes of bytes, value by value; None if no table says it."""
        if function not in tables.FUNCTIONS or self.is_on_host:
            return None
        try:
            placed = self._placed(constants)
        except ValueError:
            return None
        # Computed as it lies in memory, so that numpy's result lies in the same order.
        axes = self._axes
        if axes is None:
            node = self.node
        else:
            node = self.transpose(sorted(range(self.ndim), key=axes.__getitem__)).node
        steps: tuple[tables.Step, ...] = ()
        if node.kind.operation is POINTWISE:
            (node,), steps = node.inputs, node.kind.args[1]
        if node.kind.dtype != np.uint8:
            return None
        step = tables.Step(function, *placed)
        found = called(POINTWISE, (_FIRST, (*steps, step)), {}, (node,))
        if found is None:
            return None
        result = self._memory.another(found)
        return result if axes is None else result.transpose(axes)

    def _placed(self, constants: tuple[Any, ...]) -> tuple[tuple[Any, ...], int | None]:
        """Return constants with one axis at most, and which axis of memory that is.

        Raises:
            ValueError: They have more, or are no numbers.
        """
        found: list[Any] = []
        axes: set[int] = set()
        for each in constants:
            if isinstance(each, np.ndarray) and each.ndim:
                if each.ndim > self.ndim or each.size > _MOST_COLUMNS:
                    raise ValueError(each)
                shape = (1,) * (self.ndim - each.ndim) + each.shape
                long = [axis for axis, length in enumerate(shape) if length > 1]
                if any(shape[axis] != self.shape[axis] for axis in long) or len(long) > 1:
                    raise ValueError(each)
                axes |= {self.ndim - 1} if not long else set(long)
                found.append(each.reshape(-1).copy())
            elif each is None or isinstance(each, (int, float, str, np.generic)):
                found.append(each)
            else:
                raise ValueError(each)
        if len(axes) > 1:
            raise ValueError(axes)
        if not axes:
            return tuple(found), None
        axis = axes.pop()
        return tuple(found), axis if self._axes is None else self._axes[axis]

    def take_values_of(self, found: DeviceArray) -> bool:
        """Become another array's values, as where numpy writes in place; return whether it can."""
        if self._views or self.is_on_host or found._views:
            return False
        if (found.shape, found.dtype) != (self.shape, self.dtype):
            return False  # numpy casts, or refuses to
        self._memory.node = found._memory.node
        return True


_NAMES = {"divide": "true_divide"}


@cache
def _orders(ndim: int) -> frozenset[tuple[int, ...]]:
    """Return all orders of so many axes."""
    return frozenset(permutations(range(ndim)))


def _transposed(array: DeviceArray, axes: Any = None) -> Any:
    return array.transpose() if axes is None else array.transpose(tuple(axes))


def _moved(array: DeviceArray, source: int, destination: int) -> Any:
    rest = [axis for axis in range(array.ndim) if axis != source % array.ndim]
    rest.insert(destination % array.ndim, source % array.ndim)
    return array.transpose(rest)


def _flipped(array: DeviceArray, axis: int) -> Any:
    return array[(slice(None),) * (axis % array.ndim) + (slice(None, None, -1),)]


_FUNCTIONS: Mapping[Any, Callable[..., Any]] = {
    np.transpose: _transposed,
    np.moveaxis: _moved,
    np.flip: _flipped,
    np.flipud: lambda array: _flipped(array, 0),
    np.fliplr: lambda array: _flipped(array, 1),
    np.clip: DeviceArray.clip,
}


def _keeps_axes(how: Iterable[Any]) -> bool:
    """Return whether an index leaves all axes where they are."""
    return all(type(each) is tuple for each in how)


def _is_own(out: tuple[Any, ...]) -> bool:
    return len(out) == 1 and type(out[0]) is DeviceArray


def _are_numbers(values: Iterable[Any]) -> bool:
    return all(
        type(each) is DeviceArray or isinstance(each, (int, float, np.generic, np.ndarray))
        for each in values
    )


def _kept(value: Any) -> Any:
    return value.copy() if isinstance(value, np.ndarray) else value


def _recorded(node: Node | None) -> Node:
    assert node is not None  # the array has such a view
    return node


def hosted(value: Any) -> Any:
    """Return a value with arrays of numpy in the place of those that stand for one."""
    own = type(value)
    if own is DeviceArray:
        return value.values
    if own is tuple or own is list:
        found = own(map(hosted, value))
        is_same = all(map(is_, found, value))
        return value if is_same else found
    if own is dict:
        return dict(zip(value, hosted(tuple(value.values())), strict=True))
    return value
