"""numpy's functions of an array that stay recorded, or need no values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


def _transposed(array: Any, axes: Any = None) -> Any:
    if axes is None:
        return array.transpose()
    return array.transpose(tuple(axes)) if isinstance(axes, (tuple, list)) else None


def _moved(array: Any, source: Any, destination: Any) -> Any:
    ndim = array.ndim
    if not (is_axis(source, ndim) and is_axis(destination, ndim)):
        return None
    rest = [axis for axis in range(ndim) if axis != source % ndim]
    rest.insert(destination % ndim, source % ndim)
    return array.transpose(rest)


def _flipped(array: Any, axis: Any = None) -> Any:
    if not is_axis(axis, array.ndim):
        return None
    return array[(slice(None),) * (axis % array.ndim) + (slice(None, None, -1),)]


def is_axis(value: Any, ndim: int) -> bool:
    """Return whether a value is one of so many axes."""
    return type(value) is int and -ndim <= value < ndim


def _clipped(array: Any, *args: Any, **kwargs: Any) -> Any:
    limits = (*args, *kwargs.values())
    if len(limits) != len(_LIMITS) or tuple(kwargs) != _LIMITS[len(args) :]:
        return None
    return array.clip(*limits)


_LIMITS = ("a_min", "a_max")
FUNCTIONS: Final[Mapping[Any, Callable[..., Any]]] = {
    np.transpose: _transposed,
    np.moveaxis: _moved,
    np.flip: _flipped,
    np.flipud: lambda m: _flipped(m, 0),
    np.fliplr: lambda m: _flipped(m, 1),
    np.clip: _clipped,
    np.shape: lambda a: a.shape,
    np.ndim: lambda a: a.ndim,
    **{
        function: lambda array, *args, _of=function, **kwargs: _of(array.layout, *args, **kwargs)
        for function in (np.zeros_like, np.ones_like, np.empty_like)
    },
}
"""What stays recorded, or needs no values; each returns None where numpy is to do it."""
