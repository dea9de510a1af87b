"""Resampling by FFT or by a polyphase filter."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import torch

from devicecore.migrate.strategies.tensors import (
    as_floats,
    real_inverse,
    scipy,
    torch_type,
)
from devicecore.migrate.strategies.torch_strategy import to_array

if TYPE_CHECKING:
    from collections.abc import Callable

    from devicecore.migrate.strategies.torch_strategy import Call

# How many values of windows, which overlap, are laid out in memory at once.
_MOST_AT_ONCE: Final = 1 << 24
_BACKGROUNDS: Final[dict[Any, Callable[..., Any]]] = {
    "mean": np.mean, "median": np.median, "minimum": np.min, "maximum": np.max,
}  # fmt: skip


def resample(call: Call, x: Any, num: Any, t: Any, axis: Any, window: Any, domain: Any) -> Any:
    """Compute `scipy.signal.resample`."""
    signal = call.given(x)
    call.need(signal.size and signal.dtype.kind != "b", "there are no numbers")
    call.need(isinstance(num, (int, np.integer)) and num > 0, f"the length is {num!r}")
    call.need(domain == "time" or (domain == "freq" and signal.dtype.kind == "c"), "no spectrum")
    # Divided by a number of numpy, single precision becomes double.
    call.need(isinstance(num, int) or signal.dtype.char not in "fF", "the length is numpy's")
    number, num = call.axis(axis, signal.ndim), int(num)
    length = signal.shape[number]
    weights = _spectral_window(call, window, length)
    call.promise("tolerance")
    values = as_floats(call.tensor(signal)).movedim(number, -1)
    factor = length / num
    change = _of_real if domain == "time" and not values.is_complex() else _of_complex
    if weights is not None:
        # Folded on the host, where there is double precision.
        weights = call.tensor(weights if change is _of_complex else _folded(weights, values.dtype))
    result = change(values, num, factor, weights, is_spectrum=domain == "freq")
    resampled = to_array(result.movedim(-1, number))
    if t is None:
        return resampled
    return resampled, t[0] + (t[1] - t[0]) * factor * np.arange(num)


def _spectral_window(call: Call, window: Any, length: int) -> Any:
    if window is None:
        return None
    call.need(not callable(window), "the window is a function")
    if not hasattr(window, "shape"):
        return np.fft.fftshift(scipy("signal").get_window(window, length))
    call.need(window.shape == (length,), "the window has another length")
    given = call.given(window)
    call.need(given.dtype.kind == "f", f"the window is {given.dtype}")
    return given


def _folded(weights: Any, dtype: torch.dtype) -> Any:
    """Return the weights of half of a spectrum, in the type of a real signal."""
    used = len(weights) // 2 + 1
    folded = weights[:used].copy()
    folded[1:] = (folded[1:] + weights[::-1][: used - 1]) / 2
    return folded.astype(str(dtype).removeprefix("torch."))


def _of_real(values: Any, num: int, factor: float, weights: Any, *, is_spectrum: bool) -> Any:
    del is_spectrum  # that of a real signal is none
    length = values.shape[-1]
    fewer = min(num, length)
    spectrum = torch.fft.rfft(values)
    if weights is not None:
        spectrum = spectrum * weights
    spectrum = spectrum[..., : fewer // 2 + 1] / factor
    if fewer % 2 == 0 and num != length:  # a bin without a partner
        spectrum[..., fewer // 2] *= 2 if num < length else 0.5
    return real_inverse(spectrum, num)


def _of_complex(values: Any, num: int, factor: float, weights: Any, *, is_spectrum: bool) -> Any:
    length = values.shape[-1]
    fewer = min(num, length)
    half = fewer // 2 + 1
    spectrum = values if is_spectrum else torch.fft.fft(values)
    if weights is not None:
        spectrum = spectrum * weights
    other = spectrum.new_zeros((*spectrum.shape[:-1], num))
    other[..., :half] = spectrum[..., :half]
    if half < fewer:
        other[..., half - fewer :] = spectrum[..., half - fewer :]
    if fewer % 2 == 0:
        middle = fewer // 2
        if num < length:
            other[..., -middle] += spectrum[..., -middle]
        elif length < num:
            other[..., middle] /= 2
            other[..., num - middle] = other[..., middle]
    return torch.fft.ifft(other / factor)


def resample_poly(
    call: Call, x: Any, up: Any, down: Any, axis: Any, window: Any, padtype: Any, cval: Any
) -> Any:
    """Compute `scipy.signal.resample_poly`."""
    signal = call.given(x)
    call.need(signal.size and signal.ndim and signal.dtype.kind != "b", "there are no numbers")
    call.need(up == int(up) >= 1 and down == int(down) >= 1, "the rates are no whole numbers")
    call.need(not cval or padtype != "constant", "it is not zero around the signal")
    call.need(cval is None or padtype == "constant", "it is not zero around the signal")
    call.need(padtype == "constant" or padtype in _BACKGROUNDS, f"the padding is {padtype!r}")
    number = call.axis(axis, signal.ndim)
    up, down = (int(rate) // math.gcd(int(up), int(down)) for rate in (up, down))
    if up == down == 1:
        return signal.copy()
    taps, first = _lowpass(call, window, up, down, signal.dtype)
    background = 0
    if padtype in _BACKGROUNDS:
        background = _BACKGROUNDS[padtype](signal, axis=number, keepdims=True)
        signal = signal - background
    wanted = -(-signal.shape[number] * up // down)
    result = _filtered(call, taps, signal, up, down, number, first + wanted)
    kept = result.narrow(number, first, wanted)
    return to_array(kept) + background if padtype in _BACKGROUNDS else to_array(kept)


def _lowpass(call: Call, window: Any, up: int, down: int, dtype: Any) -> tuple[Any, int]:
    """Return a filter, and how many values of what it gives come before the signal."""
    if isinstance(window, list) or hasattr(window, "shape"):
        taps = call.given(window)
        call.need(taps.ndim == 1 and taps.size and taps.dtype.kind in "ifc", "no filter")
        half = (taps.size - 1) // 2
    else:
        rate = max(up, down)
        half = 10 * rate
        taps = scipy("signal").firwin(2 * half + 1, 1.0 / rate, window=window)
        taps = taps.astype(dtype) if dtype.kind in "fc" else taps
    before = down - half % down
    taps = np.concatenate((np.zeros(before, taps.dtype), taps * taps.dtype.type(up)))
    return taps, (half + before) // down


def upfirdn(call: Call, h: Any, x: Any, up: Any, down: Any, axis: Any, mode: Any, cval: Any) -> Any:
    """Compute `scipy.signal.upfirdn`."""
    taps, signal = call.given(h), call.given(x)
    call.need(taps.ndim == 1 and taps.size and signal.size and signal.ndim, "nothing to filter")
    call.need(up == int(up) >= 1 and down == int(down) >= 1, "the rates are no whole numbers")
    call.need(mode == "constant" and not cval, "it is not zero around the signal")
    number, up, down = call.axis(axis, signal.ndim), int(up), int(down)
    count = ((signal.shape[number] - 1) * up + taps.size - 1) // down + 1
    return to_array(_filtered(call, taps, signal, up, down, number, count))


def _filtered(call: Call, taps: Any, signal: Any, up: int, down: int, axis: int, count: int) -> Any:
    """Return the first *count* values of a signal with zeros between, filtered, then thinned out.

    Value n is the sum of ``taps[r + up*j] * signal[q - j]``, where ``n*down = up*q + r``. So after
    each *up* values the taps are the same again and the signal is *down* further: all of them are
    one product of a matrix of taps and windows of the signal.
    """
    dtype = np.result_type(taps, signal, np.float32)
    call.need(dtype.kind in "fc", f"values are {dtype}")
    terms = -(-taps.size // up)
    width = terms - 1 + down
    call.need(up * width <= _MOST_AT_ONCE, "the rates have too large factors")
    phases = np.arange(up)[:, None] * down
    behind = terms - 1 + phases // up - np.arange(width)
    places = phases % up + up * behind
    is_there = (behind >= 0) & (places < taps.size)
    matrix = np.where(is_there, taps.astype(dtype)[np.where(is_there, places, 0)], 0).astype(dtype)
    weights = call.tensor(matrix.T)
    values = call.tensor(signal).to(torch_type(dtype)).movedim(axis, -1)
    call.promise_products(values, weights)
    periods = -(-count // up)
    short = (periods - 1) * down + width - (terms - 1) - values.shape[-1]
    values = torch.nn.functional.pad(values, (terms - 1, short))
    windows = values.unfold(-1, width, down)
    at_once = max(1, _MOST_AT_ONCE // (max(1, math.prod(values.shape[:-1])) * max(width, up)))
    parts = [part @ weights for part in torch.split(windows, at_once, -2)]
    return torch.cat(parts, -2).flatten(-2)[..., :count].movedim(-1, axis)
