"""Primitives of arrays: views, copies, and lookup tables of bytes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
from attrs import frozen

from devicecore.migrate.recording import lookup_tables
from devicecore.migrate.recording.bounds import find_range

if TYPE_CHECKING:
    from collections.abc import Sequence

    from devicecore.device import Device
    from devicecore.migrate.plan.optimization_plan import Options
    from devicecore.migrate.recording.nodes import Result

    Array = np.ndarray[Any, Any]

# Images have three, and one is for those of a batch.
_MOST_AXES: Final = 5
WHOLE: Final = (None, None, None)
"""The slice of a whole axis, as `INDEX` has it."""


class _OfArrays:
    """What all of them have in common: the first argument is the array."""

    __slots__ = ()

    def takes(self, place: int | str, /) -> bool:
        """Return whether an argument is a value, and not a constant."""
        return place == 0

    def range(self, args: Sequence[Any], _: dict[str, Any], /) -> tuple[float, float]:
        """Return between which numbers the values lie: as those of the array do."""
        return find_range(args[0])


@frozen(cache_hash=True)
class View(_OfArrays):
    """A view: part of an array, or its axes in another order.

    Attributes:
        name: ``"index"`` or ``"transpose"``.
    """

    name: str

    def abstract_eval(
        self, args: Sequence[Any], _: dict[str, Any], __: Options | None, /
    ) -> Sequence[Result] | None:
        """Return the shape and the type of the view; None if there is none."""
        expr, how = args
        try:
            found = self.impl([np.broadcast_to(np.empty((), expr.dtype), expr.shape), how], {})
        except (IndexError, ValueError):  # for numpy to say
            return None
        return ((found.shape, found.dtype),)

    def impl(self, args: Sequence[Any], _: dict[str, Any], /) -> Any:
        """Return the view."""
        array, how = args
        if self.name == "transpose":
            return array.transpose(how)
        return array[tuple(slice(*each) if type(each) is tuple else each for each in how)]

    def lower(
        self, _: Device, __: Options | None, args: Sequence[Any], ___: dict[str, Any], /
    ) -> Any:
        """Return the view of a tensor."""
        tensor, how = args
        if self.name == "transpose":
            return tensor.permute(0, *(axis + 1 for axis in how))
        axis = 1
        for each in how:
            if each is None:
                tensor = tensor.unsqueeze(axis)
            elif type(each) is int:
                tensor = tensor.select(axis, each)
                continue
            else:
                tensor = _sliced(tensor, axis, slice(*each))
            axis += 1
        return tensor


def _sliced(tensor: Any, axis: int, wanted: slice) -> Any:
    start, stop, step = wanted.indices(tensor.shape[axis])
    length = len(range(start, stop, step))
    if step > 0:
        return tensor[(slice(None),) * axis + (slice(start, start + length * step, step),)]
    # torch has no steps backwards.
    last = start + (length - 1) * step
    forward = tensor[
        (slice(None),) * axis + (slice(last, start + 1, -step) if length else slice(0),)
    ]
    return forward.flip(axis)


@frozen(cache_hash=True)
class Copy(_OfArrays):
    """A copy in memory of its own, in C order.

    Attributes:
        name: ``"copy"``.
    """

    name: str = "copy"

    def abstract_eval(
        self, args: Sequence[Any], _: dict[str, Any], __: Options | None, /
    ) -> Sequence[Result]:
        """Return the shape and the type."""
        return (args[0].results[0],)

    def impl(self, args: Sequence[Any], _: dict[str, Any], /) -> Any:
        """Return the copy."""
        return args[0].copy(order="C")

    def lower(
        self, _: Device, __: Options | None, args: Sequence[Any], ___: dict[str, Any], /
    ) -> Any:
        """Return a tensor of C's order; nobody writes into any, so it may be the same one."""
        return args[0].contiguous()


@frozen(cache_hash=True)
class Pointwise(_OfArrays):
    """Maps bytes by a lookup table that NumPy has computed.

    Attributes:
        name: ``"pointwise"``.
    """

    name: str = "pointwise"

    def abstract_eval(
        self, args: Sequence[Any], _: dict[str, Any], __: Options | None, /
    ) -> Sequence[Result] | None:
        """Return the shape and the type; None if numpy refuses, or warns of a value."""
        expr, steps = args
        found = lookup_tables.make_table(steps)
        return None if found is None else ((expr.shape, found.host.dtype),)

    def range(self, args: Sequence[Any], _: dict[str, Any], /) -> tuple[float, float]:
        """Return between which numbers the values lie."""
        found = lookup_tables.make_table(args[1])
        assert found is not None
        return find_range(found.host)

    def impl(self, args: Sequence[Any], _: dict[str, Any], /) -> Any:
        """Do the same steps with a whole array."""
        array, steps = args
        for step in steps:
            array = step.on(array, step.placed(array.ndim))
        return array

    def lower(
        self, _: Device, __: Options | None, args: Sequence[Any], ___: dict[str, Any], /
    ) -> Any:
        """Look all bytes of a tensor up."""
        tensor, steps = args
        found = lookup_tables.make_table(steps)
        assert found is not None
        return lookup_tables.apply_table(tensor, found)


INDEX: Final[View] = View("index")
TRANSPOSE: Final[View] = View("transpose")
COPY: Final[Copy] = Copy()
POINTWISE: Final[Pointwise] = Pointwise()


def parse_index(key: Any, ndim: int) -> tuple[Any, ...] | None:
    """Return what stands in square brackets as an argument of `INDEX`; None if it makes a copy.

    Args:
        key: What stands there.
        ndim: How many axes the array has.
    """
    given = key if type(key) is tuple else (key,)
    used = sum(each is not None and each is not Ellipsis for each in given)
    dots = sum(each is Ellipsis for each in given)
    if dots > 1 or used > ndim or len(given) > _MOST_AXES:
        return None
    found: list[Any] = []
    for each in given:
        if each is Ellipsis:
            found += [WHOLE] * (ndim - used)
        elif each is None:
            found.append(None)
        elif isinstance(each, (int, np.integer)) and not isinstance(each, bool):
            found.append(int(each))
        elif type(each) is slice and (parts := _parts(each)) is not None:
            found.append(parts)
        else:
            return None
    return tuple(found) if dots else (*found, *[WHOLE] * (ndim - used))


def _parts(given: slice) -> tuple[int | None, ...] | None:
    parts = (given.start, given.stop, given.step)
    if not all(each is None or isinstance(each, (int, np.integer)) for each in parts):
        return None
    return tuple(None if each is None else int(each) for each in parts)
