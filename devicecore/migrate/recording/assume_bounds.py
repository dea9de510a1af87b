"""`AssumeBounds`: an array of the program, such as noise, with the bounds of its values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
from attrs import frozen

from devicecore.migrate.recording.bounds import ANY
from devicecore.migrate.recording.nodes import ArgRef, make_call

if TYPE_CHECKING:
    from collections.abc import Sequence

    from devicecore.device import Device
    from devicecore.migrate.plan.optimization_plan import Options
    from devicecore.migrate.recording.bounds import Range
    from devicecore.migrate.recording.nodes import Node, Result

    Array = np.ndarray[Any, Any]

# Few, so that frames with other numbers are computed together.
_SIZES: Final = (1.0, 2.0**10, 2.0**20, 2.0**31)


@frozen(cache_hash=True)
class AssumeBounds:
    """The same array, with known bounds of its values.

    Attributes:
        name: ``"given"``.
    """

    name: str = "given"

    def takes(self, place: int | str, /) -> bool:
        """Return whether an argument is a value: the first is."""
        return place == 0

    def abstract_eval(
        self, args: Sequence[Any], _: dict[str, Any], __: Options | None, /
    ) -> Sequence[Result]:
        """Return the shape and the type."""
        return (args[0].results[0],)

    def range(self, args: Sequence[Any], _: dict[str, Any], /) -> Range:
        """Return between which numbers the values lie."""
        return -args[1], args[1]

    def impl(self, args: Sequence[Any], _: dict[str, Any], /) -> Any:
        """Return the array."""
        return args[0]

    def lower(
        self, _: Device, __: Options | None, args: Sequence[Any], ___: dict[str, Any], /
    ) -> Any:
        """Return the tensor."""
        return args[0]


_GIVEN: Final = AssumeBounds()


def assume_bounds(node: Node, array: Array | None) -> Node:
    """Return the same value, with what is known of its size.

    Args:
        node: The value.
        array: It, where the program has it.
    """
    if array is None or array.dtype.kind != "f":
        return node  # the type says it
    found = make_call(_GIVEN, (ArgRef(0), _size_of(array)), {}, (node,))
    return node if found is None else found


def _size_of(array: Array) -> float:
    """Return how far from zero the values of an array are at most; infinite if that is too far."""
    if not array.size:
        return _SIZES[0]
    with np.errstate(invalid="ignore"):
        low, high = float(array.min()), float(array.max())
    return next((size for size in _SIZES if -size <= low <= high <= size), ANY[1])
