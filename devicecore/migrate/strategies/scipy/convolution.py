"""Convolution and correlation by FFT."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import torch

from devicecore.migrate.strategies.tensors import as_floats, scipy, torch_type
from devicecore.migrate.strategies.torch_strategy import to_array

if TYPE_CHECKING:
    from collections.abc import Sequence

    from devicecore.migrate.strategies.torch_strategy import Call

_MODES: Final = ("full", "same", "valid")
_METHODS: Final = ("auto", "direct", "fft")
# Sums of products come out of a transform with less than a quarter of 1 as their error.
_MOST_ERROR: Final = 0.25


def fftconvolve(call: Call, in1: Any, in2: Any, mode: Any, axes: Any) -> Any:
    """Compute `scipy.signal.fftconvolve`, or ``oaconvolve``."""
    one, two = call.given(in1), call.given(in2)
    call.need(one.ndim == two.ndim > 0, "the arrays have different axes, or none")
    numbers = range(one.ndim) if axes is None else np.atleast_1d(axes).tolist()
    used = [call.axis(number, one.ndim) for number in numbers]
    call.need(len(set(used)) == len(used), "an axis is there twice")
    call.promise("tolerance")
    return to_array(_convolved(call, one, two, mode, used))


def convolve(call: Call, in1: Any, in2: Any, mode: Any, method: Any) -> Any:
    """Compute `scipy.signal.convolve`."""
    return _sums(call, call.given(in1), call.given(in2), mode, method)


def correlate(call: Call, in1: Any, in2: Any, mode: Any, method: Any) -> Any:
    """Compute `scipy.signal.correlate`."""
    return _sums(call, call.given(in1), np.flip(call.given(in2)).conj(), mode, method)


def _sums(call: Call, one: Any, two: Any, mode: Any, method: Any) -> Any:
    call.need(one.ndim == two.ndim > 0, "the arrays have different axes, or none")
    call.need(method in _METHODS, f"the method is {method!r}")
    call.need(one.dtype.kind != "b" != two.dtype.kind, "sums of bools are none")
    # For several axes scipy's own loop gives the type of one of them.
    call.need(one.ndim == 1 or one.dtype == two.dtype, "the arrays have different types")
    dtype = np.result_type(one, two)
    axes = list(range(one.ndim))
    if dtype.kind in "iu":
        call.need(_are_sums_exact(one, two, dtype), "the sums may be too large for a transform")
        return to_array(_convolved(call, one, two, mode, axes).round().to(torch_type(dtype)))
    call.promise("tolerance")
    result = _convolved(call, one, two, mode, axes).to(torch_type(dtype))
    # One such value spreads all over a transform, and less far in a sum.
    call.need(result.isfinite().all(), "there are infinities or NaNs")
    return to_array(result)


def _are_sums_exact(one: Any, two: Any, dtype: Any) -> bool:
    """Return whether sums of products of integers are the same if they are rounded."""
    if not one.size or not two.size:
        return False
    most = [max(int(each.max()), -int(each.min())) for each in (one, two)]
    count = min(one.size, two.size)
    size = math.sqrt(one.size * two.size) * most[0] * most[1]
    error = 16 * np.finfo(np.float64).eps * math.log2(one.size + two.size + 1) * size
    return most[0] * most[1] * count <= int(np.iinfo(dtype).max) and float(error) < _MOST_ERROR


def _convolved(call: Call, one: Any, two: Any, mode: Any, axes: Sequence[int]) -> Any:
    """Return the part of a convolution along some axes that *mode* names."""
    call.need(mode in _MODES, f"the mode is {mode!r}")
    call.need(one.size and two.size, "an array is empty")
    used = [axis for axis in axes if one.shape[axis] != 1 != two.shape[axis]]
    call.need(used, "there is no axis to sum along")
    pairs = list(zip(one.shape, two.shape, strict=True))
    alike = all(len({1, *pair}) < 3 for axis, pair in enumerate(pairs) if axis not in used)
    call.need(alike, "the shapes do not fit")
    if mode == "valid" and not all(pairs[axis][0] >= pairs[axis][1] for axis in used):
        call.need(all(pair[1] >= pair[0] for pair in map(pairs.__getitem__, used)), "neither fits")
        one, two = two, one
    full = _transformed_product(call.tensor(one), call.tensor(two), used)
    wanted = list(full.shape)
    if mode == "same":
        wanted = list(one.shape)
    elif mode == "valid":
        for axis in used:
            wanted[axis] = one.shape[axis] - two.shape[axis] + 1
    for axis, length in enumerate(wanted):
        full = full.narrow(axis, (full.shape[axis] - length) // 2, length)
    return full


def _transformed_product(one: Any, two: Any, axes: Sequence[int]) -> Any:
    """Return the whole convolution of two tensors along *axes*; the others are broadcast."""
    one, two = as_floats(one), as_floats(two)
    kind = torch.promote_types(one.dtype, two.dtype)
    one, two = one.to(kind), two.to(kind)
    lengths = [one.shape[axis] + two.shape[axis] - 1 for axis in axes]
    is_real = not (one.is_complex() or two.is_complex())
    fast = [scipy("fft").next_fast_len(length, is_real) for length in lengths]
    forward, back = (
        (torch.fft.rfftn, torch.fft.irfftn) if is_real else (torch.fft.fftn, torch.fft.ifftn)
    )
    result = back(forward(one, fast, axes) * forward(two, fast, axes), fast, axes)
    for axis, length in zip(axes, lengths, strict=True):
        result = result.narrow(axis, 0, length)
    return result
