"""Operators of lazy arrays: recorded where that can be, else numpy's own.

Not `numpy.lib.mixins.NDArrayOperatorsMixin`, which calls ufuncs in the place of operators: numpy
compares with texts, and refuses tensors of torch, only in its operators.
"""

from __future__ import annotations

import operator
from operator import is_
from typing import TYPE_CHECKING, Any, ClassVar, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    import numpy as np

    Array = np.ndarray[Any, Any]

# Results are looked into so deep.
_MOST_DEEP: Final = 4


class Operators:
    """Has the operators of an array; what they mean for numbers is all numpy's."""

    __slots__ = ()
    # As arrays have none.
    __hash__: ClassVar[None] = None  # type: ignore[assignment] # pyright: ignore[reportIncompatibleMethodOverride]

    if TYPE_CHECKING:

        @property
        def values(self) -> Array:
            """The array on the host; from now on it is there."""
            ...

    def calculated(self, name: str, inputs: tuple[Any, ...]) -> Any:
        """Return what a function of numpy gives; None if that is not recorded."""
        raise NotImplementedError

    def take_values_of(self, found: Any) -> bool:
        """Become another array's values, as where numpy writes in place; return whether it can."""
        raise NotImplementedError


def to_numpy(value: Any) -> Any:
    """Return a value with arrays of numpy in the place of those that stand for one."""
    own = type(value)
    if issubclass(own, Operators):
        return value.values
    if own is tuple or own is list:
        found = own(map(to_numpy, value))
        is_same = all(map(is_, found, value))
        return value if is_same else found
    if own is dict:
        return dict(zip(value, to_numpy(tuple(value.values())), strict=True))
    return value


def call_with_arrays(
    call: Callable[[tuple[Any, ...], dict[str, Any]], Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> Any:
    """Return what a call returns that takes arrays of numpy only.

    What it returns of its arguments, as OpenCV does with ``dst=``, is what the caller gave.
    """
    given, named = to_numpy(args), to_numpy(kwargs)
    result = call(given, named)
    if given is args and named is kwargs:
        return result
    own = {id(array): each for array, each in _stood_for((args, kwargs), (given, named))}
    return _as_given(result, own, _MOST_DEEP) if own else result


def _stood_for(value: Any, array: Any) -> Iterator[tuple[Array, Operators]]:
    """Yield the arrays of numpy that `to_numpy` has put, each with what stands for it."""
    if issubclass(type(value), Operators):
        yield array, value
    elif value is not array:
        pairs = (value.values(), array.values()) if type(value) is dict else (value, array)
        for each, other in zip(*pairs, strict=True):
            yield from _stood_for(each, other)


def _as_given(result: Any, own: Mapping[int, Operators], depth: int) -> Any:
    """Return a result with what the caller gave in the place of the arrays put for that."""
    if depth and isinstance(result, tuple):
        members = [_as_given(each, own, depth - 1) for each in tuple.__iter__(result)]
        return replace_members(result, members)
    if depth and type(result) is list:
        result[:] = [_as_given(each, own, depth - 1) for each in result]
    return own.get(id(result), result)


def replace_members(value: tuple[Any, ...], members: list[Any]) -> Any:
    """Return a tuple of the same class with other members, or itself if they are its own."""
    if all(map(is_, members, tuple.__iter__(value))):
        return value
    found = tuple.__new__(type(value), members)
    found.__dict__.update(value.__dict__) if hasattr(value, "__dict__") else None
    return found


def _forward(function: Callable[[Any, Any], Any], name: str) -> Callable[[Any, Any], Any]:
    def method(self: Operators, other: Any) -> Any:
        found = self.calculated(name, (self, other))
        return function(self.values, to_numpy(other)) if found is None else found

    return method


def _reflected(function: Callable[[Any, Any], Any], name: str) -> Callable[[Any, Any], Any]:
    def method(self: Operators, other: Any) -> Any:
        found = self.calculated(name, (other, self))
        return function(to_numpy(other), self.values) if found is None else found

    return method


def _in_place(function: Callable[[Any, Any], Any], name: str) -> Callable[[Any, Any], Any]:
    def method(self: Operators, other: Any) -> Any:
        found = self.calculated(name, (self, other))
        if found is not None and self.take_values_of(found):
            return self
        values = self.values
        written = function(values, to_numpy(other))
        return self if written is values else written

    return method


def _unary(function: Callable[[Any], Any], name: str) -> Callable[[Any], Any]:
    def method(self: Operators) -> Any:
        found = self.calculated(name, (self,))
        return function(self.values) if found is None else found

    return method


# numpy's names where they are others than Python's.
_NAMES = {
    "sub": "subtract",
    "mul": "multiply",
    "truediv": "true_divide",
    "neg": "negative",
    "abs": "absolute",
    "and": "bitwise_and",
    "or": "bitwise_or",
    "eq": "equal",
    "ne": "not_equal",
    "lt": "less",
    "le": "less_equal",
    "gt": "greater",
    "ge": "greater_equal",
}
_BINARY = (
    *("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul"),
    *("lshift", "rshift", "and", "or", "xor"),
)


def _install() -> None:
    for own in _BINARY:
        function = getattr(operator, f"__{own}__")
        name = _NAMES.get(own, own)
        setattr(Operators, f"__{own}__", _forward(function, name))
        setattr(Operators, f"__r{own}__", _reflected(function, name))
        setattr(Operators, f"__i{own}__", _in_place(getattr(operator, f"__i{own}__"), name))
    setattr(Operators, "__divmod__", _forward(divmod, "divmod"))  # noqa: B010 - as those above
    setattr(Operators, "__rdivmod__", _reflected(divmod, "divmod"))  # noqa: B010
    for own in ("eq", "ne", "lt", "le", "gt", "ge"):
        name = f"__{own}__"
        setattr(Operators, name, _forward(getattr(operator, name), _NAMES[own]))
    for own in ("neg", "pos", "abs", "invert"):
        name = f"__{own}__"
        setattr(Operators, name, _unary(getattr(operator, name), _NAMES.get(own, own)))
    for kind in (int, float, complex):
        setattr(Operators, f"__{kind.__name__}__", _unary(kind, kind.__name__))
    setattr(Operators, "__index__", _unary(operator.index, "index"))  # noqa: B010


_install()
