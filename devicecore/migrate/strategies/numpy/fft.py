"""Fourier transforms."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import torch

from devicecore.migrate.strategies.tensors import as_floats, real_inverse
from devicecore.migrate.strategies.torch_strategy import to_array

if TYPE_CHECKING:
    from devicecore.migrate.strategies.torch_strategy import Call

_NORMS: Final = (None, "backward", "ortho", "forward")


def fft(call: Call, a: Any, n: Any, axis: Any, norm: Any) -> Any:
    """Compute `numpy.fft.fft`, ``ifft``, ``rfft`` or ``irfft``, whichever is called."""
    name = call.name.rpartition(".")[2]
    values = _values(call, a, norm)
    along = call.axis(axis, values.ndim)
    call.need(n is None or (isinstance(n, int) and n > 0), f"the length is {n!r}")
    call.need(name != "rfft" or not values.is_complex(), "values are complex")
    if name != "irfft":
        return to_array(getattr(torch.fft, name)(values, n, along, norm))
    length = 2 * (values.shape[along] - 1) if n is None else n
    call.need(length > 0 and norm in _NORMS[:2], "it has no length, or another norm")
    values = values if values.is_complex() else torch.complex(values, torch.zeros_like(values))
    return to_array(real_inverse(values, length, along))


def fftn(call: Call, a: Any, s: Any, axes: Any, norm: Any) -> Any:
    """Compute `numpy.fft.fft2`, ``fftn`` or their inverses, whichever is called."""
    values = _values(call, a, norm)
    call.need(s is None, "the lengths are given")
    numbers = range(values.ndim) if axes is None else axes
    call.need(isinstance(numbers, (tuple, list, range)), f"the axes are {axes!r}")
    along = [call.axis(each, values.ndim) for each in numbers]
    call.need(along and len(set(along)) == len(along), f"the axes are {axes!r}")
    return to_array(getattr(torch.fft, call.name.rpartition(".")[2])(values, None, along, norm))


def _values(call: Call, a: Any, norm: Any) -> Any:
    given = call.given(a)
    call.need(given.size and given.ndim, "there are no numbers")
    call.need(norm in _NORMS, f"the norm is {norm!r}")
    call.promise("tolerance")
    return as_floats(call.tensor(given))
