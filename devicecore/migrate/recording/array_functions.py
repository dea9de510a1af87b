"""NumPy's array functions that stay recorded, or need no values."""

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


def _turned(array: Any, k: int = 1, axes: Any = (0, 1)) -> Any:
    ndim = array.ndim
    if type(k) is not int or type(axes) is not tuple or len(axes) != len(_PLANE):
        return None
    if not all(is_axis(axis, ndim) for axis in axes) or not (axes[0] - axes[1]) % ndim:
        return None
    first, second = (axis % ndim for axis in axes)
    order = list(range(ndim))
    order[first], order[second] = second, first
    found = array[:]
    if k % 4 in {1, 2}:
        found = _flipped(found, second)
    if k % 4 == 2:
        found = _flipped(found, first)
    if k % 2:
        found = found.transpose(order)
    return _flipped(found, second) if k % 4 == 3 else found


def _clipped(array: Any, *args: Any, out: Any = None, **kwargs: Any) -> Any:
    limits = (*args, *kwargs.values())
    if len(limits) != len(_LIMITS) or tuple(kwargs) != _LIMITS[len(args) :]:
        return None
    if out is None:
        return array.clip(*limits)
    return array.clip(*limits, out=out) if type(out) is type(array) else None


def _rounded(array: Any, decimals: Any = 0, out: Any = None) -> Any:
    is_plain = type(decimals) is int and decimals == 0 and out is None
    return array.calculated("rint", (array,)) if is_plain else None


_LIMITS = ("a_min", "a_max")
_PLANE = (0, 1)
FUNCTIONS: Final[Mapping[Any, Callable[..., Any]]] = {
    np.transpose: _transposed,
    np.moveaxis: _moved,
    np.flip: _flipped,
    np.flipud: lambda m: _flipped(m, 0),
    np.fliplr: lambda m: _flipped(m, 1),
    np.rot90: _turned,
    np.clip: _clipped,
    np.round: _rounded,
    np.around: _rounded,
    np.shape: lambda a: a.shape,
    np.ndim: lambda a: a.ndim,
    **{
        function: lambda array, *args, _of=function, **kwargs: _of(array.layout, *args, **kwargs)
        for function in (np.zeros_like, np.ones_like, np.empty_like)
    },
}
"""What stays recorded, or needs no values; each returns None where numpy is to do it."""


def _chosen(array: Any, *args: Any, **kwargs: Any) -> Any:
    is_plain = len(args) == len(("mask", "one", "other")) and not kwargs
    return array.calculated("where", args) if is_plain else None


def _joined(array: Any, arrays: Any, axis: Any = 0, **kwargs: Any) -> Any:
    ndim = array.ndim
    if kwargs or not _are_like(array, arrays) or not is_axis(axis, ndim):
        return None
    return array.joined(arrays, axis % ndim)


def _stacked(array: Any, arrays: Any, axis: Any = 0, **kwargs: Any) -> Any:
    ndim = array.ndim + 1
    if kwargs or not _are_like(array, arrays) or not is_axis(axis, ndim):
        return None
    return array.joined(arrays, axis % ndim, is_new=True)


def _in_depth(array: Any, arrays: Any) -> Any:
    is_plane = array.ndim == len(_PLANE)
    return _stacked(array, arrays, -1) if is_plane else _joined(array, arrays, 2)


def _are_like(array: Any, others: Any) -> bool:
    own = type(array)
    return type(others) in {list, tuple} and all(
        type(each) is own and not each.is_on_host and each.ndim == array.ndim for each in others
    )


OF_SEVERAL: Final[Mapping[Any, Callable[..., Any]]] = {
    np.where: _chosen,
    np.concatenate: _joined,
    np.stack: _stacked,
    np.dstack: _in_depth,
    np.hstack: lambda array, tup, **kwargs: _joined(array, tup, 1, **kwargs),
    np.vstack: lambda array, tup, **kwargs: _joined(array, tup, 0, **kwargs),
}
"""What stays recorded of several arrays: given one of them that is not the host's, and all."""
