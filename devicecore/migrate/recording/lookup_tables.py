"""Lookup tables of 256 entries for chains of ufuncs on bytes."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
from attrs import Factory, field, frozen

from devicecore.cv.cache_key import cache_key

if TYPE_CHECKING:
    from collections.abc import Sequence

    from devicecore.cv.table import Table

    Array = np.ndarray[Any, Any]

# Steps of which numpy's result for a value depends on nothing but the value. (Others, such as the
# exponential function, may differ in the last bit with the place of the value in the array.)
FUNCTIONS = frozenset(
    {
        "add",
        "astype",
        "clip",
        "maximum",
        "minimum",
        "multiply",
        "negative",
        "subtract",
        "true_divide",
    }
)
_MOST = 1024
# Longer tables have more entries than an image has pixels.
_MOST_COLUMNS = 64
_NUMBERS = frozenset({int, float, bool})


@frozen(eq=False)
class TableStep:
    """One ufunc with its constants.

    Attributes:
        function: Its name; ``"astype"`` for the array's method.
        constants: The other arguments, in order, with None in the place of the array. An array
            among them has one axis.
        axis: Which axis of the image that is; None if there is no array.
        key: What it is told apart by.
    """

    function: str
    constants: tuple[Any, ...]
    axis: int | None = None
    key: Any = field(
        init=False,
        repr=False,
        default=Factory(
            lambda self: (self.function, tuple(map(cache_key, self.constants)), self.axis), True
        ),
    )
    _hash: int = field(init=False, repr=False, default=Factory(lambda self: hash(self.key), True))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TableStep) and self.key == other.key

    def __hash__(self) -> int:
        return self._hash

    def __reduce__(self) -> Any:  # hashes of texts are others in another process
        return TableStep, (self.function, self.constants, self.axis)

    def placed(self, ndim: int) -> tuple[Any, ...]:
        """Return the constants as they go with an array of so many axes."""
        if self.axis is None:
            return self.constants
        shape = [1] * ndim
        shape[self.axis] = -1
        return tuple(
            each.reshape(shape) if isinstance(each, np.ndarray) else each for each in self.constants
        )

    def on(self, array: Array, constants: Sequence[Any]) -> Array:
        """Return what the function gives."""
        if self.function == "astype":
            found: Array = array.astype(constants[0])
            return found
        given = [array if each is None else each for each in constants]
        made: Array = getattr(np, self.function)(*given)
        return made


@frozen(eq=False)
class TableValues:
    """The lookup table of a chain of steps.

    Attributes:
        host: What becomes of each byte, of shape (256,), or (256, n) where each place along an axis
            of the image has its own.
        axis: That axis, or None.
        table: The same on devices.
    """

    host: Array
    axis: int | None
    table: Table


_known: dict[Any, TableValues | None] = {}


def make_table(steps: tuple[TableStep, ...]) -> TableValues | None:
    """Return what some steps make of each byte; None if they cannot be in one table."""
    try:
        return _known[steps]
    except KeyError:
        pass
    if len(_known) >= _MOST:
        _known.clear()
    found = _known[steps] = _computed(steps)
    return found


def _computed(steps: tuple[TableStep, ...]) -> TableValues | None:
    from devicecore.cv.table import Table  # it imports torch

    if len({step.axis for step in steps if step.axis is not None}) > 1:
        return None
    *earlier, step = steps
    before = make_table(tuple(earlier)) if earlier else None
    if before is None and earlier:
        return None
    array = np.arange(256, dtype=np.uint8) if before is None else before.host
    axis = step.axis if before is None or step.axis is not None else before.axis
    constants: tuple[Any, ...] = step.constants
    if axis is not None and array.ndim == 1:
        array = array[:, None]
    if step.function == "astype" and not _is_safe(array, np.dtype(constants[0])):
        return None
    try:
        with warnings.catch_warnings(), np.errstate(all="raise"):
            warnings.simplefilter("error")
            found = step.on(array, constants)
    except (ArithmeticError, TypeError, ValueError, Warning):  # for numpy to say
        return None
    if found.dtype.name not in _TYPES:
        return None
    return TableValues(found, axis, Table(np.ascontiguousarray(found)))


_TYPES = frozenset({"uint8", "int16", "int32", "int64", "float32", "float64"})


def _is_safe(array: Array, wanted: np.dtype[Any]) -> bool:
    """Return whether all values fit, so that the result is the same on all machines."""
    if wanted.name not in _TYPES:
        return False
    if wanted.kind == "f":
        return True
    limits = np.iinfo(wanted)
    return bool(array.min() >= limits.min and array.max() <= limits.max)


def apply_table(tensor: Any, values: TableValues) -> Any:
    """Return what becomes of the bytes of a tensor whose first axis is the one of the images."""
    import torch

    table = values.table.there(tensor.device)
    places = tensor.to(torch.int64)
    if values.axis is None:
        return torch.take(table, places)
    shape = [1] * tensor.ndim
    shape[values.axis + 1] = -1
    columns = torch.arange(table.shape[1], device=tensor.device).reshape(shape)
    return torch.take(table, places * table.shape[1] + columns)


def place_constants(
    constants: tuple[Any, ...], shape: tuple[int, ...]
) -> tuple[tuple[Any, ...], int | None]:
    """Return constants with one axis at most, and which axis of an array of a shape that is.

    Args:
        constants: What a function is given, with None in the place of the array.
        shape: The array's shape.

    Raises:
        ValueError: They have more axes, or are no numbers.
    """
    found: list[Any] = []
    axes: set[int] = set()
    for each in constants:
        if type(each) is np.ndarray and each.ndim:
            axes |= _axes_of(each, shape)
            found.append(each.reshape(-1).copy())
        elif each is None or type(each) in _NUMBERS or isinstance(each, (str, np.generic)):
            found.append(each)
        else:
            raise ValueError(each)
    if len(axes) > 1:
        raise ValueError(axes)
    return tuple(found), axes.pop() if axes else None


def _axes_of(constant: Array, shape: tuple[int, ...]) -> set[int]:
    ndim = len(shape)
    if constant.ndim > ndim or not 0 < constant.size <= _MOST_COLUMNS:
        raise ValueError(constant)
    own = (1,) * (ndim - constant.ndim) + constant.shape
    long = {axis for axis, length in enumerate(own) if length > 1}
    if len(long) > 1 or any(own[axis] != shape[axis] for axis in long):
        raise ValueError(constant)
    return long or {ndim - 1}
