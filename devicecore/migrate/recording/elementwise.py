"""Ufuncs that all devices compute as NumPy does, in one table."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from attrs import frozen

from devicecore.migrate.recording.bounds import ANY, LARGEST, find_range, is_known

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from devicecore.device import Device
    from devicecore.migrate.plan.optimization_plan import Options
    from devicecore.migrate.recording.bounds import Range
    from devicecore.migrate.recording.nodes import Result

    Ends = Sequence[Any]
    Tensor = Any

_FLOATS: Final = frozenset({"float32", "float64"})
NUMBERS: Final = frozenset({"uint8", "int16", "int32", "int64", *_FLOATS})
"""The types of numbers that all devices have."""
_MASKS: Final = frozenset({"bool"})
TYPES: Final = NUMBERS | _MASKS
"""The types of values that all devices have."""


@frozen(eq=False)
class UfuncRule:
    """What is known of a ufunc.

    Attributes:
        lower: The same in torch, as `torch` itself and the values are given.
        takes: The types that it is recorded for: those in which numpy computes it.
        range: Returns between which numbers the results lie, from the ends of the values' ranges,
            in numpy's own scalars where there are fractions, so that they are rounded as the
            results are. None where the results are truths.
        masks: How many arguments before the values are truths.
    """

    lower: Callable[..., Tensor]
    takes: frozenset[str]
    range: Callable[..., Range] | None = None
    masks: int = 0


def _corners(function: Callable[[Any, Any], Any]) -> Callable[[Ends, Ends], Range]:
    """Return the rule of a function that is monotone in each of two arguments."""

    def rule(first: Ends, second: Ends) -> Range:
        found = [function(*each) for each in product(first, second)]
        return min(found), max(found)

    return rule


def _quotients(first: Ends, second: Ends) -> Range:
    return ANY if second[0] <= 0 <= second[1] else _corners(np.true_divide)(first, second)


def _of_ends(function: Callable[..., Any]) -> Callable[..., Range]:
    """Return the rule of a function that grows with each of its arguments."""
    return lambda *ends: (
        function(*(low for low, _ in ends)),
        function(*(high for _, high in ends)),
    )


def _extremes(function: Callable[..., Any]) -> Callable[[Ends, Ends], Range]:
    """Return the rule of the larger or the smaller of two.

    Of 0.0 and -0.0 numpy returns another one on each processor.
    """

    def rule(first: Ends, second: Ends) -> Range:
        if isinstance(first[0], np.floating) and all(
            low <= 0 <= high for low, high in (first, second)
        ):
            return ANY
        return _of_ends(function)(first, second)

    return rule


def _either(first: Ends, second: Ends) -> Range:
    return min(first[0], second[0]), max(first[1], second[1])


def _sizes(ends: Ends) -> Range:
    low, high = map(abs, ends)
    return (0.0 if ends[0] <= 0 <= ends[1] else min(low, high)), max(low, high)


def _clipped(torch: Any, values: Tensor, low: Tensor, high: Tensor) -> Tensor:
    # Not `torch.clamp`, which returns one of 0.0 and -0.0 as it likes.
    if _KEEPS_ZEROS:
        above = torch.where(values < low, low, values)
        return torch.where(above > high, high, above)
    above = torch.where(values > low, values, low)
    return torch.where(above < high, above, high)


# Of 0.0 and -0.0 numpy returns the value since 2.4, and the limit before.
_KEEPS_ZEROS: Final = bool(np.signbit(np.clip(np.array([-0.0, -0.0]), 0.0, 1.0)).all())


def _named(name: str) -> Callable[..., Tensor]:
    return lambda torch, *values: getattr(torch, name)(*values)


_ROWS: Final[Mapping[str, UfuncRule]] = {
    "add": UfuncRule(_named("add"), _FLOATS, _corners(np.add)),
    "subtract": UfuncRule(_named("sub"), _FLOATS, _corners(np.subtract)),
    "multiply": UfuncRule(_named("mul"), _FLOATS, _corners(np.multiply)),
    "true_divide": UfuncRule(_named("true_divide"), _FLOATS, _quotients),
    "negative": UfuncRule(_named("neg"), _FLOATS, lambda ends: (-ends[1], -ends[0])),
    "absolute": UfuncRule(_named("abs"), _FLOATS, _sizes),
    "rint": UfuncRule(_named("round"), _FLOATS, _of_ends(np.rint)),
    "maximum": UfuncRule(_named("maximum"), NUMBERS, _extremes(max)),
    "minimum": UfuncRule(_named("minimum"), NUMBERS, _extremes(min)),
    "clip": UfuncRule(_clipped, NUMBERS, _of_ends(np.clip)),
    "greater": UfuncRule(_named("gt"), NUMBERS),
    "greater_equal": UfuncRule(_named("ge"), NUMBERS),
    "less": UfuncRule(_named("lt"), NUMBERS),
    "less_equal": UfuncRule(_named("le"), NUMBERS),
    "equal": UfuncRule(_named("eq"), NUMBERS),
    "not_equal": UfuncRule(_named("ne"), NUMBERS),
    "bitwise_and": UfuncRule(_named("bitwise_and"), _MASKS),
    "bitwise_or": UfuncRule(_named("bitwise_or"), _MASKS),
    "invert": UfuncRule(_named("bitwise_not"), _MASKS),
    "where": UfuncRule(_named("where"), TYPES, _either, masks=1),
}


@frozen(cache_hash=True)
class Elementwise:
    """A ufunc as a primitive.

    Where a result might be infinite or no number, numpy has to warn, and it is not recorded.

    Attributes:
        name: numpy's name of it.
    """

    name: str

    def takes(self, place: int | str, /) -> bool:
        """Return whether an argument is a value: all are, unless they are constants."""
        return isinstance(place, int)

    def abstract_eval(
        self, args: Sequence[Any], _: dict[str, Any], __: Options | None, /
    ) -> Sequence[Result] | None:
        """Return the shape and the type of the result, if all devices find the same."""
        row = _ROWS[self.name]
        if not all(map(_is_computable, args)):
            return None
        try:
            dtype = self._dtype(args)
            if not is_known(self._range(args, dtype)):
                return None
            shape = np.broadcast_shapes(*(getattr(each, "shape", ()) for each in args))
            found = self.impl([_example(each) for each in args], {})
            for each in args[row.masks :]:
                _constant(each, dtype)
        except (OverflowError, TypeError, ValueError):  # for numpy to say
            return None
        is_right = all(getattr(each, "dtype", None) == np.bool_ for each in args[: row.masks])
        if not is_right or dtype.name not in row.takes or found.dtype.name not in TYPES:
            return None
        # Beside an array as large as the result, numpy's result is in C's order, too.
        if not any(each.shape == shape for each in args if hasattr(each, "results")):
            return None
        return ((shape, found.dtype),)

    def range(self, args: Sequence[Any], _: dict[str, Any], /) -> Range:
        """Return between which numbers the values lie."""
        return self._range(args, self._dtype(args))

    def _range(self, args: Sequence[Any], dtype: np.dtype[Any]) -> Range:
        row = _ROWS[self.name]
        if row.range is None:
            return 0.0, 1.0
        ranges = list(map(find_range, args[row.masks :]))
        if not all(map(is_known, ranges)):
            return ANY
        scalar = dtype.type if dtype.kind == "f" else float
        with np.errstate(all="ignore"):
            low, high = row.range(*((scalar(low), scalar(high)) for low, high in ranges))
        return float(low), float(high)

    def impl(self, args: Sequence[Any], _: dict[str, Any], /) -> Any:
        """Compute it by numpy."""
        return getattr(np, self.name)(*args)

    def lower(
        self, _: Device, __: Options | None, args: Sequence[Any], ___: dict[str, Any], /
    ) -> Any:
        """Compute it by torch, in the type that numpy would."""
        import torch

        row = _ROWS[self.name]
        dtype = self._dtype(args)
        tensors = [each for each in args if isinstance(each, torch.Tensor)]
        there, ndim = tensors[0].device, max(each.ndim for each in tensors)
        wanted = getattr(torch, dtype.name)
        values: list[Any] = []
        for place, each in enumerate(args):
            if isinstance(each, torch.Tensor):
                cast = each if place < row.masks else each.to(wanted)
                # The first axis is the one of the images.
                missing = (1,) * (ndim - each.ndim)
                values.append(cast.reshape(each.shape[:1] + missing + each.shape[1:]))
            else:
                # A tensor of one number, too: by a number torch multiplies with its reciprocal.
                is_mask = place < row.masks
                values.append(
                    torch.as_tensor(each if is_mask else _constant(each, dtype), device=there)
                )
        return row.lower(torch, *values)

    def computed_type(self, args: Sequence[Any]) -> np.dtype[Any]:
        """Return the type in which a device computes it."""
        return self._dtype(args)

    def _dtype(self, args: Sequence[Any]) -> np.dtype[Any]:
        """Return the type in which numpy computes it."""
        examples = map(_example, args[_ROWS[self.name].masks :])
        if self.name == "true_divide":
            with np.errstate(all="ignore"):
                found: np.dtype[Any] = np.true_divide(*examples).dtype
            return found
        return np.result_type(*examples)


ELEMENTWISE: Final[Mapping[str, Elementwise]] = {name: Elementwise(name) for name in _ROWS}
"""The functions of numpy that are recorded, by their names."""


@frozen(cache_hash=True)
class Cast:
    """Casts values to another dtype, where they fit.

    Attributes:
        name: ``"astype"``.
    """

    name: str = "astype"

    def takes(self, place: int | str, /) -> bool:
        """Return whether an argument is a value: the first is."""
        return place == 0

    def abstract_eval(
        self, args: Sequence[Any], _: dict[str, Any], __: Options | None, /
    ) -> Sequence[Result] | None:
        """Return the shape and the type, if no value is too large for it."""
        expr, name = args
        if expr.dtype.name not in TYPES or name not in NUMBERS:
            return None
        low, high = self.range(args, {})
        if name in _FLOATS and expr.dtype.name not in _FLOATS:
            limits = ANY
        elif name in _FLOATS:
            limits = (-LARGEST, LARGEST)
        else:
            limits = np.iinfo(name).min, np.iinfo(name).max
        if expr.dtype.name != name and not limits[0] <= low <= high <= limits[1]:
            return None
        return ((expr.shape, np.dtype(name)),)

    def range(self, args: Sequence[Any], _: dict[str, Any], /) -> Range:
        """Return between which numbers the values lie: a fraction is cut off, or rounded."""
        found, dtype = find_range(args[0]), np.dtype(args[1])
        if not is_known(found):
            return ANY
        if dtype.kind == "f":
            return float(dtype.type(found[0])), float(dtype.type(found[1]))
        return float(np.trunc(found[0])), float(np.trunc(found[1]))

    def impl(self, args: Sequence[Any], _: dict[str, Any], /) -> Any:
        """Cast an array."""
        return args[0].astype(args[1])

    def lower(
        self, _: Device, __: Options | None, args: Sequence[Any], ___: dict[str, Any], /
    ) -> Any:
        """Cast a tensor."""
        import torch

        return args[0].to(getattr(torch, args[1]))


CAST: Final[Cast] = Cast()


def _is_computable(value: Any) -> bool:
    if isinstance(value, (bool, np.bool_)):
        return False
    if isinstance(value, (int, float)):
        return abs(value) < LARGEST
    return str(getattr(value, "dtype", "")) in TYPES


def _constant(value: Any, dtype: np.dtype[Any]) -> Any:
    """Return a constant in the type that is computed in; anything else as it is.

    Raises:
        OverflowError: It does not fit.
    """
    is_number = isinstance(value, (int, float, np.generic, np.ndarray))
    return np.asarray(value, dtype) if is_number else value


def _example(value: Any) -> Any:
    """Return a small array of the same type, or the number itself."""
    dtype = getattr(value, "dtype", None)
    if dtype is None or isinstance(value, np.generic):
        return value
    return np.ones((1,) * max(value.ndim, 1), str(dtype).removeprefix("torch."))
