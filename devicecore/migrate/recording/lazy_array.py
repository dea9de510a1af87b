"""`LazyArray`: an array whose values are on a device, or not computed yet.

It is no ndarray, so that nothing written in C can read memory that has no values: such code raises
an error, and then the frame runs anew without us. To Python it says that it is one. What is not
recorded here is done by numpy itself, with the values, which then stay on the host for good.
"""

from __future__ import annotations

import math
from copy import copy, deepcopy
from functools import cache
from itertools import permutations
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from devicecore.migrate.recording.arithmetic import LazyArithmetic
from devicecore.migrate.recording.array_functions import FUNCTIONS, OF_SEVERAL, is_axis
from devicecore.migrate.recording.array_primitives import COPY, INDEX, TRANSPOSE, View, parse_index
from devicecore.migrate.recording.buffer import Buffer
from devicecore.migrate.recording.nodes import FIRST, make_call, make_source
from devicecore.migrate.recording.operators import call_with_arrays, to_numpy

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from devicecore.migrate.recording.nodes import Node

    Array = np.ndarray[Any, Any]

# Parts with fewer axes are numpy's: Python's own types take them for lists of numbers.
_LEAST_AXES: Final = 2
# The kinds of types whose names say which they are.
_NUMBERS: Final = "biufc"


class LazyArray(LazyArithmetic):
    """An array whose values are on a device, or not computed yet.

    Args:
        memory: Its values, shared with its views.
        views: What leads from the whole to this part of it, and its order of axes.
        axes: Which axis of what lies in memory each axis is.
    """

    __slots__ = ("__weakref__", "_axes", "_host", "_memory", "_node", "_views", "_whole")

    def __init__(
        self,
        memory: Buffer,
        views: tuple[tuple[View, Any], ...] = (),
        axes: tuple[int, ...] | None = None,
    ) -> None:
        self._memory = memory
        self._views = views
        self._axes = axes
        self._host: Array | None = None
        self._whole = memory.node
        self._node = self._viewed(memory.node)

    if not TYPE_CHECKING:

        @property
        def __class__(self) -> Any:  # programs ask isinstance before they use it
            return np.ndarray

    @property
    def node(self) -> Node:
        """Its values, as of now."""
        memory = self._memory
        if memory.host is not None:
            return self._viewed(make_source(memory.host.copy()))
        if self._whole is not memory.node:  # somebody has written into it
            self._whole = memory.node
            self._node = self._viewed(memory.node)
        return self._node

    def _viewed(self, node: Node) -> Node:
        for view, how in self._views:
            node = _recorded(make_call(view, (FIRST, how), {}, (node,)))
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
    def axes_in_memory(self) -> tuple[int, ...] | None:
        """Which axis of what lies in memory each axis is; None if they are in that order."""
        return self._axes

    def shares(self, other: LazyArray) -> bool:
        """Return whether both are of the same memory."""
        return self._memory is other._memory

    @property
    def values(self) -> Array:
        """The array on the host, always the same one; from now on it is there."""
        host = self._host
        if host is None:
            host = self._memory.on_host()
            for view, how in self._views:
                host = view.impl([host, how], {})
            self._host = host
        return host

    @property
    def layout(self) -> Array:
        """An array of the same shape, type and strides, with any values."""
        found = np.empty(self._memory.node.expr.shape, self._memory.node.expr.dtype)
        for view, how in self._views:
            found = view.impl([found, how], {})
        return found

    # They have no setters, so that a frame that would change them runs anew without us.

    @property
    def shape(self) -> tuple[int, ...]:
        """The lengths of its axes."""
        return self._node.expr.results[0][0]

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of its values."""
        return self._node.expr.results[0][1]

    @property
    def ndim(self) -> int:
        """How many axes it has."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """How many values it has."""
        return math.prod(self.shape)

    @property
    def itemsize(self) -> int:
        """The bytes of one value."""
        return self.dtype.itemsize

    @property
    def nbytes(self) -> int:
        """The bytes of all values."""
        return self.size * self.dtype.itemsize

    @property
    def strides(self) -> tuple[int, ...]:
        """How many bytes lie between two values, for each axis."""
        return self.layout.strides if self._host is None else self._host.strides

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
        if self.is_on_host:
            return self.values.transpose(*axes)
        if wanted not in _orders(ndim):
            wanted = tuple([axis % ndim if is_axis(axis, ndim) else ndim for axis in wanted])
            if wanted not in _orders(ndim):
                return self.values.transpose(*axes)  # it raises an error
        old = self._axes
        order = tuple(wanted) if old is None else tuple([old[axis] for axis in wanted])
        views = self._views
        if views and views[-1][0] is TRANSPOSE:
            *rest, (_, last) = views
            views, wanted = tuple(rest), tuple([last[axis] for axis in wanted])
        if wanted != straight:
            views = (*views, (TRANSPOSE, wanted))
        return LazyArray(self._memory, views, None if order == straight else order)

    def __getitem__(self, key: Any) -> Any:
        how = None if self.is_on_host else parse_index(key, self.ndim)
        if how is None or (self._axes is not None and not _keeps_axes(how)):
            return self.values[to_numpy(key)]
        node = make_call(INDEX, (FIRST, how), {}, (self.node,))
        if node is None or node.expr.ndim < _LEAST_AXES:
            return self.values[key]
        return LazyArray(self._memory, (*self._views, (INDEX, how)), self._axes)

    def __setitem__(self, key: Any, value: Any) -> None:
        self.values[to_numpy(key)] = to_numpy(value)

    def __delitem__(self, key: Any) -> None:
        del self.values[key]  # type: ignore[attr-defined] # numpy raises its error

    def __contains__(self, value: Any) -> bool:
        return to_numpy(value) in self.values

    def __len__(self) -> int:
        return self.shape[0]

    def __iter__(self) -> Iterator[Any]:
        return iter(self.values)

    def __bool__(self) -> bool:
        return bool(self.values)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        return np.array(self.values, dtype, copy=copy)

    def __array_ufunc__(self, function: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        out: tuple[Any, ...] = kwargs.get("out", ())
        is_plain = not kwargs or (kwargs.keys() == {"out"} and _is_own(out))
        name: str = function.__name__
        if method == "__call__" and is_plain and getattr(np, name, None) is function:
            recorded = self.calculated(name, inputs)
            if recorded is not None and not out:
                return recorded
            if recorded is not None and out[0].take_values_of(recorded):
                return out[0]
        found = getattr(function, method)(*to_numpy(inputs), **to_numpy(kwargs))
        if not isinstance(found, tuple):
            return out[0] if out else found
        given = out or (None,) * len(found)
        return tuple(new if old is None else old for old, new in zip(given, found, strict=True))

    def __array_function__(
        self, function: Any, types: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        del types
        own = FUNCTIONS.get(function)
        if own is not None and args and type(args[0]) is LazyArray and not args[0].is_on_host:
            found = own(*args, **kwargs)
            if found is not None:
                return found
        of_several = OF_SEVERAL.get(function)
        if of_several is not None:
            found = of_several(self, *args, **kwargs)
            if found is not None:
                return found
        return call_with_arrays(lambda given, named: function(*given, **named), args, kwargs)

    def astype(self, dtype: Any, *args: Any, **kwargs: Any) -> Any:
        """Return the values in another type."""
        if not args and not kwargs.keys() - {"copy"}:
            wanted = np.dtype(dtype)
            if wanted == self.dtype and kwargs.get("copy") is False:
                return self
            found = self.cast(wanted) if wanted.isnative and wanted.kind in _NUMBERS else None
            if found is not None:
                return found
        return self.values.astype(dtype, *args, **kwargs)

    def clip(self, *args: Any, **kwargs: Any) -> Any:
        """Return the values between two limits."""
        out = kwargs.get("out")
        if (
            len(args) == len(("low", "high"))
            # Beside arrays numpy compares 0.0 and -0.0 otherwise.
            and not isinstance(args[0], np.ndarray)
            and not isinstance(args[1], np.ndarray)
            and (not kwargs or tuple(kwargs) == ("out",))
        ):
            found = self.calculated("clip", (self, *args))
            if found is not None and out is None:
                return found
            if found is not None and type(out) is LazyArray and out.take_values_of(found):
                return out
        clipped = self.values.clip(*to_numpy(args), **to_numpy(kwargs))
        return out if type(out) is LazyArray else clipped

    def another(self, node: Node) -> LazyArray:
        """Return an array with values of its own."""
        return LazyArray(Buffer(node, self._memory.frame.now()))

    def copy(self, order: str = "C") -> Any:
        """Return the values in memory of their own."""
        if order != "C" or self.is_on_host:
            return self.values.copy(order=order)  # type: ignore[arg-type]
        return self.another(_recorded(make_call(COPY, (FIRST,), {}, (self.node,))))

    def contiguous(self) -> Any:
        """Return an array of C's order: this one, if it is of that."""
        if self.is_on_host:
            return np.ascontiguousarray(self.values)
        return self if not self._views or self.layout.flags.c_contiguous else self.copy()

    def __copy__(self) -> Any:
        return copy(self.values) if self._views or self.is_on_host else self.copy()

    def __deepcopy__(self, memo: Any) -> Any:
        return deepcopy(self.values, memo) if self._views or self.is_on_host else self.copy()

    def __reduce_ex__(self, protocol: Any) -> Any:
        return self.values.__reduce_ex__(protocol)

    def __getattr__(self, name: str) -> Any:
        if name in _OF_MEMORY:  # numpy would make another array of it, and ask us no more
            raise AttributeError(name)
        return getattr(self.values, name)

    def __repr__(self) -> str:
        return repr(self.values)

    def __str__(self) -> str:
        return str(self.values)

    def __format__(self, wanted: str) -> str:
        return format(self.values, wanted)


_OF_MEMORY = frozenset({"__array_interface__", "__array_struct__"})


@cache
def _orders(ndim: int) -> frozenset[tuple[int, ...]]:
    """Return all orders of so many axes."""
    return frozenset(permutations(range(ndim)))


def _keeps_axes(how: Iterable[Any]) -> bool:
    """Return whether an index leaves all axes where they are."""
    return all(type(each) is tuple for each in how)


def _is_own(out: tuple[Any, ...]) -> bool:
    return len(out) == 1 and type(out[0]) is LazyArray


def _recorded(node: Node | None) -> Node:
    assert node is not None  # the array has such a view
    return node
