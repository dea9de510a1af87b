"""Arithmetic of arrays of numbers with a fraction, which all devices round as numpy does."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from attrs import frozen

from devicecore.migrate.lazy.bounds import ANY, LARGEST, is_known, range_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import torch

    from devicecore.device import Device
    from devicecore.migrate.lazy.bounds import Range
    from devicecore.migrate.lazy.nodes import Result
    from devicecore.migrate.plan import Options

_FLOATS = frozenset({"float32", "float64"})
_TENSORS = frozenset({"uint8", "int16", "int32", "float32", "float64"})


@frozen(cache_hash=True)
class Arithmetic:
    """A sum, a difference, a product or a quotient.

    Where a result might be infinite or no number, numpy has to warn, and it is not recorded.

    Attributes:
        name: numpy's name of it.
    """

    name: str

    def takes(self, place: int | str, /) -> bool:
        """Return whether an argument is a value: both are, unless they are constants."""
        return isinstance(place, int)

    def results(
        self, args: Sequence[Any], _: dict[str, Any], __: Options | None, /
    ) -> Sequence[Result] | None:
        """Return the shape and the type of the result, if all devices find the same."""
        if not all(map(_is_computable, args)) or not is_known(self.range(args, {})):
            return None
        found = getattr(np, self.name)(*map(_example, args))
        if found.dtype.name not in _FLOATS:
            return None
        try:
            shape = np.broadcast_shapes(*(getattr(each, "shape", ()) for each in args))
        except ValueError:  # for numpy to say
            return None
        # What has as many axes as the result is as large, beside constants.
        if any(each.shape != shape for each in args if hasattr(each, "results")):
            return None
        return ((shape, found.dtype),)

    def range(self, args: Sequence[Any], _: dict[str, Any], /) -> Range:
        """Return between which numbers the values lie."""
        first, second = map(range_of, args)
        if not is_known(first) or not is_known(second):
            return ANY
        if self.name == "true_divide" and second[0] <= 0 <= second[1]:
            return ANY
        ends = [_OF_NUMBERS[self.name](*each) for each in product(first, second)]
        return min(ends), max(ends)

    def on_host(self, args: Sequence[Any], _: dict[str, Any], /) -> Any:
        """Compute it by numpy."""
        return getattr(np, self.name)(*args)

    def on_device(
        self, _: Device, __: Options | None, args: Sequence[Any], ___: dict[str, Any], /
    ) -> torch.Tensor:
        """Compute it by torch, in the type that numpy would."""
        import torch

        dtype = getattr(np, self.name)(*map(_example, args)).dtype.name
        kind = getattr(torch, dtype)
        there = next(each.device for each in args if isinstance(each, torch.Tensor))
        # A tensor of one number, too: by a number torch multiplies with its reciprocal.
        first, second = (
            each.to(kind)
            if isinstance(each, torch.Tensor)
            else torch.as_tensor(np.asarray(each, dtype), device=there)
            for each in args
        )
        found: torch.Tensor = getattr(torch, self.name)(first, second)
        return found


_OF_NUMBERS: Mapping[str, Callable[[float, float], float]] = {
    "add": lambda one, other: one + other,
    "subtract": lambda one, other: one - other,
    "multiply": lambda one, other: one * other,
    "true_divide": lambda one, other: one / other,
}

ARITHMETIC: Final[Mapping[str, Arithmetic]] = {name: Arithmetic(name) for name in _OF_NUMBERS}
"""The functions of numpy that are recorded, by their names."""


def _is_computable(value: Any) -> bool:
    if isinstance(value, (bool, np.bool_)):
        return False
    if isinstance(value, (int, float)):
        return abs(value) < LARGEST
    return str(getattr(value, "dtype", "")) in _TENSORS


def _example(value: Any) -> Any:
    """Return a small array of the same type, or the number itself."""
    dtype = getattr(value, "dtype", None)
    if dtype is None or isinstance(value, np.generic):
        return value
    return np.ones((1,) * max(value.ndim, 1), str(dtype).removeprefix("torch."))
