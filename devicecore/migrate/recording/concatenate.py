"""The primitive that joins arrays along an axis."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
from attrs import frozen

from devicecore.migrate.recording.bounds import find_range
from devicecore.migrate.recording.elementwise import TYPES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from devicecore.device import Device
    from devicecore.migrate.plan.optimization_plan import Options
    from devicecore.migrate.recording.bounds import Range
    from devicecore.migrate.recording.nodes import Result


def find_axis_order(layouts: Sequence[Any], axis: int, *, is_new: bool) -> tuple[int, ...] | None:
    """Return the axes of what numpy makes of arrays, as they lie in memory; None if it refuses.

    It follows the strides of all of them, so numpy itself says so, of the few first values.

    Args:
        layouts: Arrays of the same shapes, types and strides, with any values.
        axis: Along which of the result's axes they are joined.
        is_new: Whether they do not have that axis yet.
    """
    few = [each[(slice(2),) * each.ndim] for each in layouts]
    try:
        found = np.stack(few, axis) if is_new else np.concatenate(few, axis)
    except ValueError:  # for numpy to say, of the whole arrays
        return None
    steps = list(zip(found.strides, found.shape, strict=True))
    return tuple(sorted(range(found.ndim), key=steps.__getitem__, reverse=True))


@frozen(cache_hash=True)
class Join:
    """Concatenates arrays of one dtype along an axis.

    Attributes:
        name: ``"concatenate"``.
    """

    name: str = "concatenate"

    def takes(self, place: int | str, /) -> bool:
        """Return whether an argument is a value: those of the list are."""
        return place == 0

    def abstract_eval(
        self, args: Sequence[Any], _: dict[str, Any], __: Options | None, /
    ) -> Sequence[Result] | None:
        """Return the shape and the type; None if numpy refuses, or has to cast."""
        exprs, axis = args
        first = exprs[0]
        if any(each.dtype != first.dtype or each.ndim != first.ndim for each in exprs):
            return None
        shapes = [(*each.shape[:axis], *each.shape[axis + 1 :]) for each in exprs]
        if first.dtype.name not in TYPES or any(each != shapes[0] for each in shapes):
            return None
        length = sum(each.shape[axis] for each in exprs)
        return (((*first.shape[:axis], length, *first.shape[axis + 1 :]), first.dtype),)

    def range(self, args: Sequence[Any], _: dict[str, Any], /) -> Range:
        """Return between which numbers the values lie."""
        lows, highs = zip(*map(find_range, args[0]), strict=True)
        return min(lows), max(highs)

    def impl(self, args: Sequence[Any], _: dict[str, Any], /) -> Any:
        """Join arrays."""
        return np.concatenate(args[0], axis=args[1])

    def lower(
        self, _: Device, __: Options | None, args: Sequence[Any], ___: dict[str, Any], /
    ) -> Any:
        """Join tensors, whose first axis is the one of the images."""
        import torch

        return torch.cat(list(args[0]), dim=args[1] + 1)


JOIN: Final[Join] = Join()
