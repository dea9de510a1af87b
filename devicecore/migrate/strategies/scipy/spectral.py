"""Short-time Fourier transforms, spectrograms, detrending and the Hilbert transform."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import torch

from devicecore.migrate.strategies.signal_extension import EXTENSIONS, is_reached, overlapped
from devicecore.migrate.strategies.tensors import (
    as_floats,
    real_inverse,
    scipy,
    torch_type,
)
from devicecore.migrate.strategies.torch_strategy import to_array

if TYPE_CHECKING:
    from devicecore.migrate.strategies.torch_strategy import Call

_SCALINGS: Final = {"spectrum": "spectrum", "psd": "density"}
_MODES: Final = ("psd", "complex", "magnitude")
_LINEAR: Final = ("linear", "l")
_CONSTANT: Final = ("constant", "c")
_TINY: Final = 1e-10


class _Parts(NamedTuple):
    """How a signal is cut into parts."""

    window: Any
    length: int
    overlap: int
    transformed: int

    @property
    def step(self) -> int:
        return self.length - self.overlap


def _window(call: Call, window: Any, nperseg: Any, most: int | None) -> Any:
    if isinstance(window, (str, tuple)):
        length = 256 if nperseg is None else int(nperseg)
        call.need(length > 0 and (most is None or length <= most), "parts longer than the signal")
        return scipy("signal").get_window(window, length)
    given = call.given(window)
    call.need(given.ndim == 1 and given.size and given.dtype.kind in "fi", "no real window")
    call.need(most is None or given.size <= most, "parts longer than the signal")
    call.need(nperseg is None or int(nperseg) == given.size, "the window has another length")
    return given


def _parts(call: Call, window: Any, nperseg: Any, noverlap: Any, nfft: Any, most: int) -> _Parts:
    values = _window(call, window, nperseg, most)
    length = values.size
    overlap = length // 2 if noverlap is None else int(noverlap)
    call.need(0 <= overlap < length, "the parts overlap as a whole, or not at all")
    transformed = length if nfft is None else int(nfft)
    call.need(transformed >= length, "the transform is shorter than the parts")
    return _Parts(values, length, overlap, transformed)


def stft(
    call: Call,
    x: Any,
    fs: Any,
    window: Any,
    nperseg: Any,
    noverlap: Any,
    nfft: Any,
    detrend: Any,
    return_onesided: Any,
    boundary: Any,
    padded: Any,
    axis: Any,
    scaling: Any,
) -> Any:
    """Compute `scipy.signal.stft`."""
    call.need(scaling in _SCALINGS, f"the scaling is {scaling!r}")
    call.need(boundary in EXTENSIONS, f"the boundary is {boundary!r}")
    signal, number = _signal(call, x, axis, is_onesided=return_onesided)
    parts = _parts(call, window, nperseg, noverlap, nfft, signal.shape[number])
    half = parts.length // 2 if boundary else 0
    is_short = boundary in {"even", "odd"} and half >= signal.shape[number]
    call.need(not is_short, "there are too few values to continue the signal with")
    call.promise("tolerance")
    values = as_floats(call.tensor(signal)).movedim(number, -1)
    if half:
        values = EXTENSIONS[boundary](values, half)
    if padded:
        short = (-(values.shape[-1] - parts.length) % parts.step) % parts.length
        values = torch.nn.functional.pad(values, (0, short))
    spectra, weights = _spectra(call, values, signal, parts, detrend, bool(return_onesided))
    result = spectra * _scale(weights, fs, _SCALINGS[scaling]) ** 0.5
    times = _times(parts, values.shape[-1], fs)
    if boundary is not None:
        times -= (parts.length / 2) / fs
    return _found(parts, times, result, signal, fs, axis, is_onesided=return_onesided)


def spectrogram(
    call: Call,
    x: Any,
    fs: Any,
    window: Any,
    nperseg: Any,
    noverlap: Any,
    nfft: Any,
    detrend: Any,
    return_onesided: Any,
    scaling: Any,
    axis: Any,
    mode: Any,
) -> Any:
    """Compute `scipy.signal.spectrogram`, but for angles."""
    call.need(mode in _MODES, f"the mode is {mode!r}")
    call.need(scaling in _SCALINGS.values(), f"the scaling is {scaling!r}")
    signal, number = _signal(call, x, axis, is_onesided=return_onesided)
    if noverlap is None:
        noverlap = _window(call, window, nperseg, signal.shape[number]).size // 8
    parts = _parts(call, window, nperseg, noverlap, nfft, signal.shape[number])
    call.promise("tolerance")
    values = as_floats(call.tensor(signal)).movedim(number, -1)
    spectra, weights = _spectra(call, values, signal, parts, detrend, bool(return_onesided))
    scale = _scale(weights, fs, scaling)
    result = spectra * scale**0.5
    if mode == "psd":
        result = spectra.real.square().add(spectra.imag.square()) * scale
        if return_onesided:  # what is without a partner is there once
            result[..., 1 : None if parts.transformed % 2 else -1] *= 2
    elif mode == "magnitude":
        result = result.abs()
    times = _times(parts, values.shape[-1], fs)
    return _found(parts, times, result, signal, fs, axis, is_onesided=return_onesided)


def _signal(call: Call, x: Any, axis: Any, *, is_onesided: Any) -> tuple[Any, int]:
    call.need(isinstance(x, np.ndarray), "it is no array")
    signal = call.given(x)
    call.need(signal.size and signal.dtype.kind != "b", "there are no numbers")
    call.need(not is_onesided or signal.dtype.kind != "c", "a complex spectrum has two sides")
    return signal, call.axis(axis, signal.ndim)


def _spectra(
    call: Call, values: Any, signal: Any, parts: _Parts, detrend: Any, is_onesided: bool
) -> tuple[Any, Any]:
    """Return the spectra of the parts, and the window that scipy has for this type of values."""
    call.need(detrend is False or detrend in (*_LINEAR, *_CONSTANT), "the detrending is its own")
    weights = parts.window
    if _outcome(signal) == np.complex64:
        weights = weights.astype(np.float32)
    cut = values.unfold(-1, parts.length, parts.step)
    if detrend is not False:
        cut = without_trend(cut, is_linear=detrend in _LINEAR, has_doubles=call.has_doubles)
    cut = cut * call.tensor(weights)
    transform = torch.fft.rfft if is_onesided else torch.fft.fft
    return transform(cut, n=parts.transformed), weights


def _outcome(signal: Any) -> Any:
    return np.result_type(signal, np.complex64)


def _scale(weights: Any, fs: Any, scaling: str) -> float:
    if scaling == "density":
        return float(1.0 / (fs * (weights * weights).sum()))
    return float(1.0 / weights.sum() ** 2)


def _times(parts: _Parts, length: int, fs: Any) -> Any:
    half = parts.length / 2
    return np.arange(half, length - half + 1, parts.step) / float(fs)


def _found(
    parts: _Parts, times: Any, result: Any, signal: Any, fs: Any, axis: int, *, is_onesided: Any
) -> Any:
    """Return what scipy does: frequencies, times and values."""
    dtype = torch_type(_outcome(signal))
    result = result.to(dtype if result.is_complex() else dtype.to_real())
    frequencies = (np.fft.rfftfreq if is_onesided else np.fft.fftfreq)(parts.transformed, 1 / fs)
    return frequencies, times, to_array(result.movedim(-1, axis - 1 if axis < 0 else axis))


def istft(
    call: Call,
    Zxx: Any,
    fs: Any,
    window: Any,
    nperseg: Any,
    noverlap: Any,
    nfft: Any,
    input_onesided: Any,
    boundary: Any,
    time_axis: Any,
    freq_axis: Any,
    scaling: Any,
) -> Any:
    """Compute `scipy.signal.istft`."""
    spectra = call.given(Zxx)
    call.need(spectra.ndim > 1 and spectra.size and spectra.dtype.kind == "c", "no spectra")
    call.need(scaling in _SCALINGS, f"the scaling is {scaling!r}")
    times, bins = (call.axis(each, spectra.ndim) for each in (time_axis, freq_axis))
    call.need(times != bins, "time and frequency have one axis")
    count = spectra.shape[bins]
    usual = 2 * (count - 1) if input_onesided else count
    length = usual if nperseg is None else int(nperseg)
    if nfft is None:
        nfft = length if input_onesided and length == usual + 1 else usual
    values = _window(call, window, length, None)
    parts = _parts(call, values, length, noverlap, int(nfft), length)
    call.need(not boundary or length > 1, "there is nothing to take off at the ends")
    call.promise("tolerance")
    tensor = call.tensor(spectra).movedim((bins, times), (-2, -1))
    single = tensor.dtype == torch.complex64
    weights = values.astype(np.float32 if single else np.float64)
    signal = _joined(call, tensor, parts, weights, bool(input_onesided), bool(boundary))
    factor = weights.sum() if scaling == "spectrum" else np.sqrt(fs * (weights**2).sum())
    signal = (signal * float(factor)).movedim(-1, times - (bins < times))
    return np.arange(signal.shape[0]) / float(fs), to_array(signal)


def _joined(
    call: Call, spectra: Any, parts: _Parts, weights: Any, is_onesided: bool, has_ends: bool
) -> Any:
    """Return the signal that spectra are those of."""
    if is_onesided:
        pieces = real_inverse(spectra, parts.transformed, -2)
    else:
        pieces = torch.fft.ifft(spectra, n=parts.transformed, dim=-2)
    window = call.tensor(weights)
    pieces = pieces[..., : parts.length, :] * window[:, None]
    signal = overlapped(pieces, parts.step)
    squares = (window**2)[:, None].expand(-1, pieces.shape[-1])
    norm = overlapped(squares, parts.step)
    if has_ends:
        half = parts.length // 2
        signal, norm = signal[..., half:-half], norm[..., half:-half]
    call.need((norm > _TINY).all(), "the windows leave gaps, of which scipy warns")
    call.need(is_reached(norm), "hardly a window reaches some values")
    return signal / norm


def detrend(
    call: Call,
    data: Any,
    axis: Any,
    type: Any,
    bp: Any,
    overwrite_data: Any,
) -> Any:
    """Compute `scipy.signal.detrend`."""
    signal = call.given(data)
    call.need(signal.size and signal.ndim and signal.dtype.kind != "b", "there are no numbers")
    call.need(type in (*_LINEAR, *_CONSTANT), f"the type is {type!r}")
    call.need(not overwrite_data, "the data may be overwritten")
    number = call.axis(axis, signal.ndim)
    length = signal.shape[number]
    call.promise("tolerance")
    values = as_floats(call.tensor(signal)).movedim(number, -1)
    if type in _CONSTANT:
        return to_array(
            without_trend(values, is_linear=False, has_doubles=call.has_doubles).movedim(-1, number)
        )
    ends = np.unique(np.concatenate([[0], np.atleast_1d(bp), [length]]))
    call.need(ends.dtype.kind in "iu", "a break is between values")
    call.need(ends[0] == 0 and ends[-1] == length, "a break is outside")
    cut = values.split(np.diff(ends).tolist(), -1)
    values = torch.cat(
        [without_trend(each, is_linear=True, has_doubles=call.has_doubles) for each in cut], -1
    )
    return to_array(values.movedim(-1, number))


def without_trend(values: Any, *, is_linear: bool, has_doubles: bool) -> Any:
    """Return values without their mean, or without the line nearest to them, along the last axis.

    Args:
        values: Numbers with fractions.
        is_linear: Whether it is the line.
        has_doubles: Whether the device computes in double precision.
    """
    if not has_doubles:  # what is left after the first time is small, and so is its own error
        return _without_trend(_without_trend(values, is_linear=is_linear), is_linear=is_linear)
    precise = values.to(torch.complex128 if values.is_complex() else torch.float64)
    return _without_trend(precise, is_linear=is_linear).to(values.dtype)


def _without_trend(values: Any, *, is_linear: bool) -> Any:
    values = values - values.mean(-1, keepdim=True)
    length = values.shape[-1]
    if not is_linear or length == 1:
        return values
    dtype = values.real.dtype
    # Of -1 to 1, so that no sum is large.
    line = torch.linspace(-1, 1, length, dtype=dtype, device=values.device)
    slope = (values * line).sum(-1, keepdim=True) / line.square().sum()
    return values - slope * line


def hilbert(call: Call, x: Any, N: Any, axis: Any) -> Any:
    """Compute `scipy.signal.hilbert`."""
    signal = call.given(x)
    call.need(signal.size and signal.ndim and signal.dtype.kind in "iuf", "no real numbers")
    number = call.axis(axis, signal.ndim)
    length = signal.shape[number] if N is None else N
    call.need(isinstance(length, (int, np.integer)) and length > 0, f"the length is {length!r}")
    call.promise("tolerance")
    spectrum = torch.fft.fft(as_floats(call.tensor(signal)), n=int(length), dim=number)
    spectrum = spectrum.movedim(number, -1)
    spectrum[..., 1 : (length + 1) // 2] *= 2
    spectrum[..., length // 2 + 1 :] = 0
    return to_array(torch.fft.ifft(spectrum).movedim(-1, number))
