"""`LazyArithmetic`: records the arithmetic of a lazy array."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from devicecore.migrate.recording import lookup_tables
from devicecore.migrate.recording.array_primitives import INDEX, POINTWISE, WHOLE
from devicecore.migrate.recording.assume_bounds import assume_bounds
from devicecore.migrate.recording.concatenate import JOIN, find_axis_order
from devicecore.migrate.recording.elementwise import CAST, ELEMENTWISE
from devicecore.migrate.recording.nodes import FIRST, ArgRef, Node, make_call, make_source
from devicecore.migrate.recording.operators import Operators

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Self

    from devicecore.migrate.recording.buffer import Buffer
    from devicecore.migrate.recording.nodes import Primitive

    Array = np.ndarray[Any, Any]

_NUMBERS: Final = frozenset({int, float, bool})
# Larger arrays of the program are values, and no part of what frames have in common.
_MOST_CONSTANTS: Final = 64
_NAMES: Final = {"divide": "true_divide"}


class LazyArithmetic(Operators):
    """Records the arithmetic of a lazy array."""

    __slots__ = ()

    if TYPE_CHECKING:
        _memory: Buffer

        @property
        def node(self) -> Node:
            """Its values, as of now."""
            ...

        @property
        def is_on_host(self) -> bool:
            """Whether its values are on the host, where others may write into them."""
            ...

        @property
        def is_view(self) -> bool:
            """Whether it is part of another array, or has its axes in another order."""
            ...

        @property
        def axes_in_memory(self) -> tuple[int, ...] | None:
            """Which axis of what lies in memory each axis is; None if they are in that order."""
            ...

        @property
        def layout(self) -> Array:
            """An array of the same shape, type and strides, with any values."""
            ...

        @property
        def shape(self) -> tuple[int, ...]:
            """The lengths of its axes."""
            ...

        @property
        def dtype(self) -> np.dtype[Any]:
            """The type of its values."""
            ...

        def transpose(self, *axes: Any) -> Any:
            """Return a view with the axes in another order."""

    def another(self, node: Node) -> Self:
        """Return an array with values of its own."""
        raise NotImplementedError

    def calculated(self, name: str, inputs: tuple[Any, ...]) -> Any:
        """Return what a function of numpy gives; None if that is not recorded."""
        name = _NAMES.get(name, name)
        primitive = ELEMENTWISE.get(name)
        if primitive is None or not all(map(_is_plain, inputs)):
            return None
        own = [each for each in inputs if isinstance(each, LazyArithmetic)]
        if len(own) == 1 and own[0] is self:
            if name in lookup_tables.FUNCTIONS:
                constants = tuple([None if each is self else each for each in inputs])
                found = self.stepped(name, constants)
                if found is not None:
                    return found
            if self.axes_in_memory is not None:
                return self._turned(primitive, inputs)
        if any(each.is_on_host or each.axes_in_memory is not None for each in own):
            return None
        node = self._called(primitive, inputs)
        return None if node is None else self.another(node)

    def cast(self, wanted: np.dtype[Any]) -> Any:
        """Return the values in another type; None if that is not recorded."""
        found = self.stepped("astype", (wanted.name,))
        if found is not None or self.is_on_host:
            return found
        node, axes = self._as_it_lies()
        cast = make_call(CAST, (FIRST, wanted.name), {}, (node,))
        return None if cast is None else self._laid_out(cast, axes)

    def joined(self, arrays: Sequence[Self], axis: int, *, is_new: bool = False) -> Any:
        """Return arrays one after the other; None if that is not recorded.

        Args:
            arrays: As many axes each.
            axis: Along which of the result's axes.
            is_new: Whether they do not have that axis yet.
        """
        if any(each.is_on_host for each in arrays):
            return None
        order = find_axis_order([each.layout for each in arrays], axis, is_new=is_new)
        if order is None:
            return None
        place = order.index(axis)
        own = [each - (each > axis) for each in order if each != axis] if is_new else order
        nodes = [each.transpose(own).node for each in arrays]
        if is_new:
            nodes = [_with_axis(each, place) for each in nodes]
        node = make_call(JOIN, (list(map(ArgRef, range(len(nodes)))), place), {}, nodes)
        axes = tuple(map(order.index, range(len(order))))
        return None if node is None else self._laid_out(node, axes)

    def stepped(self, function: str, constants: tuple[Any, ...]) -> Any:
        """Return what becomes of bytes, value by value; None if no table says it."""
        if self.is_on_host:
            return None
        try:
            placed, axis = lookup_tables.place_constants(constants, self.shape)
        except ValueError:
            return None
        node, axes = self._as_it_lies()
        steps: tuple[lookup_tables.TableStep, ...] = ()
        if node.expr.primitive is POINTWISE:
            (node,), steps = node.inputs, node.expr.args[1]
        if node.expr.dtype != np.uint8:
            return None
        step = lookup_tables.TableStep(
            function, placed, axis if axis is None or axes is None else axes[axis]
        )
        found = make_call(POINTWISE, (FIRST, (*steps, step)), {}, (node,))
        return None if found is None else self._laid_out(found, axes)

    def take_values_of(self, found: Any) -> bool:
        """Become another array's values, as where numpy writes in place; return whether it can."""
        if self.is_view or self.is_on_host or found.is_view or found.shape != self.shape:
            return False
        if found.dtype != self.dtype:
            if (found.dtype.name, self.dtype.name) != ("float64", "float32"):
                return False  # numpy refuses to, or others cast otherwise
            found = found.cast(self.dtype)
            if found is None:
                return False
        self._memory.node = found.node
        return True

    def _as_it_lies(self) -> tuple[Node, tuple[int, ...] | None]:
        """Return the values with the axes in the order of memory, and the order that they have.

        What is computed of them so lies in the same order as numpy's result.
        """
        axes = self.axes_in_memory
        if axes is None:
            return self.node, None
        straight = sorted(range(len(axes)), key=axes.__getitem__)
        return self.transpose(straight).node, axes

    def _laid_out(self, node: Node, axes: tuple[int, ...] | None) -> Any:
        found = self.another(node)
        return found if axes is None else found.transpose(axes)

    def _turned(self, primitive: Primitive, inputs: tuple[Any, ...]) -> Any:
        """Return what becomes of an array with axes in another order, and of numbers."""
        others = [each for each in inputs if each is not self]
        if self.is_on_host or any(isinstance(each, np.ndarray) for each in others):
            return None
        args = [FIRST if each is self else each for each in inputs]
        node, axes = self._as_it_lies()
        found = make_call(primitive, args, {}, (node,))
        return None if found is None else self._laid_out(found, axes)

    def _called(self, primitive: Primitive, inputs: tuple[Any, ...]) -> Node | None:
        """Return what becomes of arrays and numbers."""
        nodes: list[Node] = []
        args: list[Any] = []
        given: list[tuple[int, Array]] = []
        for each in inputs:
            if isinstance(each, LazyArithmetic):
                nodes.append(each.node)
            elif type(each) is not np.ndarray or each.size <= _MOST_CONSTANTS:
                args.append(each.copy() if isinstance(each, np.ndarray) else each)
                continue
            else:
                nodes.append(assume_bounds(make_source(each), each))
                given.append((len(nodes) - 1, each))
            args.append(ArgRef(len(nodes) - 1))
        found = make_call(primitive, args, {}, nodes)
        if found is None or not given:
            return found
        for place, array in given:  # only now, as it is a copy
            kept = self._memory.frame.keep(array)
            if kept is None:
                return None
            is_bounded = nodes[place].inputs
            nodes[place] = Node(nodes[place].expr, (kept,)) if is_bounded else kept
        return Node(found.expr, tuple(nodes))


def _with_axis(node: Node, place: int) -> Node:
    """Return values with one more axis, of length 1."""
    how = (*[WHOLE] * place, None, *[WHOLE] * (node.expr.ndim - place))
    found = make_call(INDEX, (FIRST, how), {}, (node,))
    assert found is not None  # all values have such a view
    return found


def _is_plain(value: Any) -> bool:
    """Return whether a value is a number or an array, of no class that has its own arithmetic."""
    own = type(value)
    return (
        own is np.ndarray
        or own in _NUMBERS
        or issubclass(own, LazyArithmetic)
        or isinstance(value, np.generic)
    )
