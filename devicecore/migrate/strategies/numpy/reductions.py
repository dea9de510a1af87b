"""Sums, means, variances and sorting."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
import torch

from devicecore.migrate.strategies.tensors import as_floats
from devicecore.migrate.strategies.torch_strategy import to_array

if TYPE_CHECKING:
    from devicecore.migrate.strategies.torch_strategy import Call

_STABLE: Final = ("stable", "mergesort")


def total(call: Call, a: Any, axis: Any, keepdims: Any) -> Any:
    """Compute `numpy.sum`."""
    values, along, keep = _reduced(call, a, axis, keepdims)
    if not (values.is_floating_point() or values.is_complex()):
        call.need(values.dtype == torch.int64, "sums of small integers have numpy's own type")
        return to_array(values.sum(along, keepdim=keep))[()]
    call.promise("tolerance")
    return to_array(values.sum(along, keepdim=keep))[()]


def mean(call: Call, a: Any, axis: Any, keepdims: Any) -> Any:
    """Compute `numpy.mean`."""
    values, along, keep = _reduced(call, a, axis, keepdims)
    call.promise("tolerance")
    return to_array(as_floats(values).mean(along, keepdim=keep))[()]


def var(call: Call, a: Any, axis: Any, ddof: Any, keepdims: Any) -> Any:
    """Compute `numpy.var`."""
    return to_array(_variance(call, a, axis, ddof, keepdims))[()]


def std(call: Call, a: Any, axis: Any, ddof: Any, keepdims: Any) -> Any:
    """Compute `numpy.std`."""
    return to_array(_variance(call, a, axis, ddof, keepdims).sqrt())[()]


def _variance(call: Call, a: Any, axis: Any, ddof: Any, keepdims: Any) -> Any:
    values, along, keep = _reduced(call, a, axis, keepdims)
    values = as_floats(values)
    call.need(not values.is_complex(), "variances of complex numbers are real")
    call.need(isinstance(ddof, (int, float)), f"the degrees are {ddof!r}")
    count = values.numel() // max(1, values.sum(along).numel())
    call.need(count > ddof, "there are too few values")
    call.promise("tolerance")
    off = values - values.mean(along, keepdim=True)
    return off.square().sum(along, keepdim=keep) / (count - ddof)


def _reduced(call: Call, a: Any, axis: Any, keepdims: Any) -> tuple[Any, list[int], bool]:
    """Return the values, the axes along which they are reduced, and whether those stay."""
    values = call.given(a)
    call.need(values.size and values.ndim and values.dtype.kind in "iufc", "there are no numbers")
    if axis is None:
        along = list(range(values.ndim))
    else:
        numbers = axis if isinstance(axis, tuple) else (axis,)
        along = [call.axis(each, values.ndim) for each in numbers]
    call.need(along and len(set(along)) == len(along), f"the axes are {axis!r}")
    return call.tensor(values), along, keepdims is True


def sort(call: Call, a: Any, axis: Any) -> Any:
    """Compute `numpy.sort`."""
    values, along = _sorted(call, a, axis)
    return to_array(values.sort(along).values)


def argsort(call: Call, a: Any, axis: Any, kind: Any, stable: Any = None) -> Any:
    """Compute `numpy.argsort` where equal values keep their order."""
    call.need(kind in _STABLE or stable is True, "equal values may come in any order")
    values, along = _sorted(call, a, axis)
    return to_array(values.argsort(stable=True, dim=along))


def _sorted(call: Call, a: Any, axis: Any) -> tuple[Any, int]:
    values = call.given(a)
    call.need(values.size and values.ndim and values.dtype.kind in "iuf", "there is no order")
    if axis is None:
        values, axis = values.reshape(-1), 0
    # Zeros of both signs are equal, and come out in the order that a library likes.
    is_zero = values.dtype.kind == "f" and np.signbit(values[values == 0]).any()
    call.need(not is_zero, "there are negative zeros")
    return call.tensor(values), call.axis(axis, values.ndim)
