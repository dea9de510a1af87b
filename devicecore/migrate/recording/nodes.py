"""Expression graph of a frame: an `Expr` says how a value is computed, a `Node` is one value.

All frames that do the same have the same expressions, so that what is found out about one is known
of the others, and those of a batch can be computed at once.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, Final, Protocol

from attrs import frozen

from devicecore.cv.cache_key import cache_key
from devicecore.fork import rearm_after_fork

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    import numpy as np

    from devicecore.device import Device
    from devicecore.migrate.plan.optimization_plan import Options

    Array = np.ndarray[Any, Any]
    Result = tuple[tuple[int, ...], np.dtype[Any]]

# Random arguments make ever new expressions; with more than these all are made anew.
_MOST: Final = 4096


class Primitive(Protocol):
    """An operation on arrays: how it is evaluated abstractly, on the host and on a device.

    Attributes:
        name: Its name, the same in all processes.
    """

    @property
    def name(self) -> str:
        """Its name, the same in all processes."""
        ...

    def takes(self, place: int | str, /) -> bool:
        """Return whether an array as that argument is a value, and not a constant of the call."""
        ...

    def abstract_eval(
        self, args: Sequence[Any], kwargs: dict[str, Any], options: Options | None, /
    ) -> Sequence[Result] | None:
        """Return the shape and the type of the result, or of several; None if it cannot say.

        Args:
            args: The arguments, with a `Expr` for each value.
            kwargs: More of them.
            options: What the plan says of such calls.
        """

    def impl(self, args: Sequence[Any], kwargs: dict[str, Any], /) -> Any:
        """Return what the program itself would have got, from arrays."""

    def lower(
        self,
        device: Device,
        options: Options | None,
        args: Sequence[Any],
        kwargs: dict[str, Any],
        /,
    ) -> Any:
        """Return the same from tensors, as tensors; all of them have one more axis, for images.

        Raises:
            RefusedCallError: No kernel promises as much as is asked for.
        """


class ArgRef(int):
    """Refers to one of the inputs, among the arguments of a call."""

    __slots__ = ()


FIRST: Final = ArgRef(0)
"""Of a call with one value: that one."""


class Expr:
    """How a value is computed: a primitive, its arguments and the expressions of its inputs.

    Attributes:
        primitive: What computes it; None for an array that the program had.
        args: The arguments, with a `ArgRef` for each value.
        kwargs: More of them.
        inputs: How the values are computed that it is computed from.
        results: Shape and type, of each result if there are several.
        options: What the plan says of such calls.
        range: Between which numbers its values lie, once somebody has asked `bounds.range_of`.
    """

    __slots__ = ("args", "inputs", "kwargs", "options", "primitive", "range", "results")

    def __init__(  # noqa: PLR0917 - it is made here only
        self,
        primitive: Primitive | None,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        inputs: tuple[Expr, ...],
        results: Sequence[Result],
        options: Options | None,
    ) -> None:
        self.primitive: Primitive | None = primitive
        self.args: tuple[Any, ...] = args
        self.kwargs: dict[str, Any] = kwargs
        self.inputs: tuple[Expr, ...] = inputs
        self.results: Sequence[Result] = results
        self.options: Options | None = options
        self.range: tuple[float, float] | None = None

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the result."""
        return self.results[0][0]

    @property
    def dtype(self) -> np.dtype[Any]:
        """Its type."""
        return self.results[0][1]

    @property
    def ndim(self) -> int:
        """How many axes it has."""
        return len(self.results[0][0])

    def filled(self, values: Sequence[Any]) -> tuple[list[Any], dict[str, Any]]:
        """Return the arguments with values in their places."""
        args = [_filled(each, values) for each in self.args]
        return args, {name: _filled(each, values) for name, each in self.kwargs.items()}

    def __reduce__(self) -> Any:  # all that are sent together have it once
        given = (self.primitive, self.args, self.kwargs, self.inputs, self.options)
        return (_again, given) if self.inputs else (_of_arrays, self.results[0])

    def __repr__(self) -> str:
        name = "an array" if self.primitive is None else self.primitive.name
        return f"<{name} of {self.inputs}>" if self.inputs else f"<{name}>"


class Node:
    """One value: an expression and its inputs.

    Attributes:
        expr: How it is computed.
        inputs: The values that it is computed from.
        host: The array, where the program had it; never written into.
        there: What it is on the device, once it was computed.
    """

    __slots__ = ("expr", "host", "inputs", "there")

    def __init__(
        self, expr: Expr, inputs: tuple[Node, ...] = (), host: Array | None = None
    ) -> None:
        self.expr: Expr = expr
        self.inputs: tuple[Node, ...] = inputs
        self.host: Array | None = host
        self.there: Any = None

    def __reduce__(self) -> Any:
        if self.expr.primitive is None:
            return make_source, (self.host,)
        return Node, (self.expr, self.inputs)


_UNKNOWN: Final = object()


class _ExprTable:
    """Interns expressions: equal ones are one object."""

    def __init__(self) -> None:
        self._known: dict[Any, Expr | None] = {}
        self.after_fork()
        rearm_after_fork(self)

    def after_fork(self) -> None:
        """Make a lock that no thread of the parent holds."""
        self._lock = threading.Lock()

    def find(self, key: Any, make: Callable[[], Expr | None]) -> Expr | None:
        """Return the expression of *key*, made once; None if there is none.

        Raises:
            TypeError: The key cannot be one.
        """
        found = self._known.get(key, _UNKNOWN)
        if found is not _UNKNOWN:
            return found  # type: ignore[return-value]
        made = make()
        with self._lock:
            if len(self._known) >= _MOST:
                self._known.clear()
            return self._known.setdefault(key, made)


_exprs = _ExprTable()


def make_source(array: Array) -> Node:
    """Return the value that an array is; nobody may write into it any more."""
    return Node(_of_arrays(array.shape, array.dtype), (), array)


def _of_arrays(shape: tuple[int, ...], dtype: np.dtype[Any]) -> Expr:
    """Return the expression of arrays that a program had."""
    result = (shape, dtype)
    found = _exprs.find(result, lambda: Expr(None, (), {}, (), (result,), options=None))
    assert found is not None
    return found


def make_call(
    primitive: Primitive,
    args: Sequence[Any],
    kwargs: dict[str, Any],
    inputs: Sequence[Node],
    options: Options | None = None,
) -> Node | None:
    """Return the value of a call, or None if it cannot be recorded.

    Args:
        primitive: What was called.
        args: The arguments, with a `ArgRef` for each value.
        kwargs: More of them.
        inputs: The values.
        options: What the plan says of such calls.
    """
    expr = _of_calls(primitive, args, kwargs, tuple([node.expr for node in inputs]), options)
    return None if expr is None else Node(expr, tuple(inputs))


def _of_calls(
    primitive: Primitive,
    args: Sequence[Any],
    kwargs: dict[str, Any],
    exprs: tuple[Expr, ...],
    options: Options | None,
) -> Expr | None:
    """Return the expression of a call of a primitive."""

    def make() -> Expr | None:
        given = [_filled(each, exprs) for each in args]
        named = {name: _filled(each, exprs) for name, each in kwargs.items()}
        results = primitive.abstract_eval(given, named, options)
        if results is None:
            return None
        return Expr(primitive, tuple(args), dict(kwargs), exprs, results, options)

    try:
        own = tuple([_key(each) for each in args])
        named = tuple([(name, _key(each)) for name, each in kwargs.items()]) if kwargs else None
        key = (primitive, exprs, own, named, options)
        hash(key)
    except TypeError:  # an argument of some other class: nobody knows what it may do
        return None
    return _exprs.find(key, make)


@frozen
class Part:
    """One of several results.

    Attributes:
        name: ``"part"``.
    """

    name: str = "part"

    def takes(self, place: int | str, /) -> bool:
        """Return whether an argument is a value: the results are."""
        return place == 0

    def abstract_eval(
        self, args: Sequence[Any], _: dict[str, Any], __: Options | None, /
    ) -> Sequence[Result]:
        """Return the shape and the type of the one."""
        return (args[0].results[args[1]],)

    def impl(self, args: Sequence[Any], _: dict[str, Any], /) -> Any:
        """Return it."""
        return args[0][args[1]]

    def lower(
        self, _: Device, __: Options | None, args: Sequence[Any], ___: dict[str, Any], /
    ) -> Any:
        """Return it."""
        return args[0][args[1]]


_PART: Final = Part()


def make_part(node: Node, index: int) -> Node:
    """Return one of several results."""
    found = make_call(_PART, (ArgRef(0), index), {}, (node,))
    assert found is not None
    return found


def _again(
    primitive: Primitive,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    exprs: tuple[Expr, ...],
    options: Options | None,
) -> Expr:
    found = _of_calls(primitive, args, kwargs, exprs, options)
    if found is None:
        msg = f"another process has recorded a call of {primitive.name} that cannot be here"
        raise ValueError(msg)
    return found


def topological_order(roots: Sequence[Any]) -> Iterator[Any]:
    """Yield nodes, or expressions, and all that they are computed from, what is needed first."""
    seen: set[int] = set()
    waiting = [(each, False) for each in reversed(roots)]
    while waiting:
        node, is_ready = waiting.pop()
        if is_ready:
            yield node
        elif id(node) not in seen:
            seen.add(id(node))
            waiting.append((node, True))
            waiting += [(each, False) for each in reversed(node.inputs)]


def find_sources(roots: Sequence[Node]) -> Iterator[Node]:
    """Yield the nodes that others are computed from, and that are computed from none."""
    if len(roots) == 1:
        (node,) = roots
        while len(node.inputs) == 1:  # most do one thing after the other
            (node,) = node.inputs
        if not node.inputs:
            yield node
            return
    yield from (node for node in topological_order(roots) if not node.inputs)


def compute_on_host(root: Node) -> Any:
    """Return a value as the program itself would have computed it, in an array of its own."""
    values: dict[int, Any] = {}
    for node in topological_order([root]):
        if node.expr.primitive is None:
            values[id(node)] = node.host
        else:
            args, kwargs = node.expr.filled([values[id(each)] for each in node.inputs])
            values[id(node)] = node.expr.primitive.impl(args, kwargs)
    found = values[id(root)]
    return found.copy() if root.host is not None else found


def _filled(value: Any, values: Sequence[Any]) -> Any:
    if type(value) is ArgRef:
        return values[value]
    if type(value) is list or type(value) is tuple:
        return type(value)([_filled(each, values) for each in value])
    return value


_SIMPLE = frozenset({int, bool, str, type(None), ArgRef})


def _key(value: Any) -> Any:
    own = type(value)
    if own in _SIMPLE:
        return own, value
    if own is list or own is tuple:
        return (own, *map(_key, value))
    return cache_key(value)
