"""Computes librosa's spectra and features by torch."""

from __future__ import annotations

import math
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import torch

from devicecore.migrate.strategies.scipy import resampling
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

_PADDINGS: Final = {"constant": "zeros", "reflect": "even", "edge": "constant"}


def _filters() -> Any:
    return import_module("librosa.filters")


def stft(
    call: Call,
    y: Any,
    n_fft: Any,
    hop_length: Any,
    win_length: Any,
    window: Any,
    center: Any,
    dtype: Any,
    pad_mode: Any,
    out: Any,
) -> Any:
    """Compute `librosa.stft`."""
    call.need(dtype is None and out is None, "the result is to be of another kind")
    call.promise("tolerance")
    spectra = _spectra(call, y, n_fft, hop_length, win_length, window, center, pad_mode)
    return np.asfortranarray(to_array(spectra))


def _spectra(
    call: Call,
    y: Any,
    n_fft: Any,
    hop_length: Any,
    win_length: Any,
    window: Any,
    center: Any,
    pad_mode: Any,
) -> Any:
    """Return the spectra of a sound: channels, frequencies and times."""
    sound = _sound(call, y)
    call.need(isinstance(n_fft, int) and 1 < n_fft <= sound.shape[-1], "it is too short")
    length, hop = _steps(call, n_fft, hop_length, win_length)
    weights = _window(call, window, length, n_fft)
    values = call.tensor(sound)
    call.need(values.isfinite().all(), "there are infinities or NaNs")
    half = n_fft // 2
    if center:
        call.need(pad_mode in _PADDINGS, f"the padding is {pad_mode!r}")
        call.need(half < sound.shape[-1], "it is too short")
        values = EXTENSIONS[_PADDINGS[pad_mode]](values, half)
    cut = values.unfold(-1, n_fft, hop) * call.tensor(weights).to(values.dtype)
    return torch.fft.rfft(cut).movedim(-1, -2)


def _sound(call: Call, y: Any) -> Any:
    call.need(isinstance(y, np.ndarray), "it is no array")
    sound = call.given(y)
    call.need(sound.dtype.kind == "f" and sound.ndim and sound.size, "it is no sound")
    return sound


def _steps(call: Call, n_fft: int, hop_length: Any, win_length: Any) -> tuple[Any, int]:
    """Return how long the windows are, and how far apart."""
    length = n_fft if win_length is None else win_length
    hop = length // 4 if hop_length is None else hop_length
    call.need(isinstance(hop, int) and hop > 0, f"the hop length is {hop!r}")
    return length, hop


def _window(call: Call, window: Any, length: Any, n_fft: int) -> Any:
    """Return librosa's window, with zeros around it."""
    call.need(not callable(window), "the window is a function")
    call.need(isinstance(length, int) and 0 < length <= n_fft, f"the window has {length} values")
    call.need(np.size(window) in {1, length} or isinstance(window, tuple), "another window")
    weights = _filters().get_window(window, length, fftbins=True)
    before = (n_fft - length) // 2
    return np.pad(weights, (before, n_fft - length - before))


def istft(
    call: Call,
    stft_matrix: Any,
    hop_length: Any,
    win_length: Any,
    n_fft: Any,
    window: Any,
    center: Any,
    dtype: Any,
    length: Any,
    out: Any,
) -> Any:
    """Compute `librosa.istft`."""
    call.need(dtype is None and out is None, "the result is to be of another kind")
    given = call.given(stft_matrix)
    call.need(given.dtype.kind == "c" and given.ndim > 1 and given.size, "there are no spectra")
    call.need(length is None or (isinstance(length, int) and length > 0), "it has no length")
    count = 2 * (given.shape[-2] - 1)
    call.need(count > 1 and n_fft in {None, count}, "the spectra have another length")
    used, hop = _steps(call, count, hop_length, win_length)
    call.promise("tolerance")
    half = count // 2 if center else 0
    number = given.shape[-1]
    if length is not None:
        number = min(number, math.ceil((length + 2 * half) / hop))
    pieces = real_inverse(call.tensor(given[..., :number]), count, -2)
    weights = call.tensor(_window(call, window, used, count)).to(pieces.dtype)[:, None]
    signal = overlapped(pieces * weights, hop)[..., half:]
    norm = overlapped(weights.square().expand(-1, number), hop)[half:]
    wanted = length or signal.shape[-1] - half
    short = max(0, wanted - signal.shape[-1])
    signal, norm = (torch.nn.functional.pad(each, (0, short)) for each in (signal, norm))
    signal, norm = signal[..., :wanted], norm[:wanted]
    call.need(is_reached(norm), "hardly a window reaches some values")
    return to_array(torch.where(norm > torch.finfo(norm.dtype).tiny, signal / norm, signal))


def melspectrogram(
    call: Call,
    y: Any,
    sr: Any,
    S: Any,
    n_fft: Any,
    hop_length: Any,
    win_length: Any,
    window: Any,
    center: Any,
    pad_mode: Any,
    power: Any,
    kwargs: dict[str, Any],
) -> Any:
    """Compute `librosa.feature.melspectrogram`."""
    spectra, n_fft = _powers(
        call, y, S, n_fft, hop_length, win_length, window, center, pad_mode, power
    )
    return to_array(_mel(call, spectra, sr, n_fft, kwargs))


def _powers(call: Call, y: Any, S: Any, n_fft: Any, *others: Any) -> tuple[Any, Any]:
    """Return powers of a spectrum, and how many values it is of."""
    *how, power = others
    if S is None:
        call.need(isinstance(power, (int, float)), f"the power is {power!r}")
        return _spectra(call, y, n_fft, *how).abs() ** power, n_fft
    given = call.given(S)
    call.need(given.dtype.kind == "f" and given.ndim > 1 and given.size, "there are no powers")
    is_length = n_fft is not None and n_fft // 2 + 1 == given.shape[-2]
    return call.tensor(given), n_fft if is_length else 2 * (given.shape[-2] - 1)


def _mel(call: Call, spectra: Any, sr: Any, n_fft: Any, how: dict[str, Any]) -> Any:
    basis = _filters().mel(sr=sr, n_fft=n_fft, **how)
    kind = torch.promote_types(spectra.dtype, torch_type(basis.dtype))
    call.promise_products(spectra.to(kind))
    return call.tensor(basis).to(kind) @ spectra.to(kind)


def power_to_db(call: Call, S: Any, ref: Any, amin: Any, top_db: Any) -> Any:
    """Compute `librosa.power_to_db`."""
    given = call.given(S)
    call.need(given.dtype.kind in "fi" and given.ndim and given.size, "there are no powers")
    call.promise("tolerance")
    return to_array(_decibels(call, as_floats(call.tensor(given)), ref, amin, top_db))


def amplitude_to_db(call: Call, S: Any, ref: Any, amin: Any, top_db: Any) -> Any:
    """Compute `librosa.amplitude_to_db`."""
    given = call.given(S)
    call.need(given.dtype.kind == "f" and given.ndim and given.size, "there are no amplitudes")
    call.need(isinstance(amin, float), f"the least value is {amin!r}")
    call.promise("tolerance")
    values = call.tensor(given).abs()
    most = values.max() if ref is np.max else _number(call, ref)
    return to_array(_decibels(call, values.square(), float(most**2), amin**2, top_db))


def _decibels(call: Call, powers: Any, ref: Any, amin: Any, top_db: Any) -> Any:
    call.need(isinstance(amin, (int, float)) and amin > 0, f"the least value is {amin!r}")
    call.need(top_db is None or (isinstance(top_db, (int, float)) and top_db >= 0), "no range")
    most = float(powers.max()) if ref is np.max else _number(call, ref)
    found = 10 * powers.clamp(min=amin).log10() - 10 * math.log10(max(amin, most))
    return found if top_db is None else torch.maximum(found, found.max() - top_db)


def _number(call: Call, ref: Any) -> float:
    call.need(isinstance(ref, (int, float)), "the reference is a function of its own")
    return abs(float(ref))


def mfcc(
    call: Call,
    y: Any,
    sr: Any,
    S: Any,
    n_mfcc: Any,
    dct_type: Any,
    norm: Any,
    lifter: Any,
    mel_norm: Any,
    kwargs: dict[str, Any],
) -> Any:
    """Compute `librosa.feature.mfcc`."""
    call.need(isinstance(lifter, (int, float)) and lifter >= 0, f"the lifter is {lifter!r}")
    call.need(isinstance(n_mfcc, int) and n_mfcc > 0, f"there are to be {n_mfcc!r}")
    if S is None:
        how = dict(kwargs)
        usual = {
            "n_fft": 2048, "hop_length": 512, "win_length": None, "window": "hann",
            "center": True, "pad_mode": "constant", "power": 2.0,
        }  # fmt: skip
        taken = [how.pop(name, value) for name, value in usual.items()]
        spectra, n_fft = _powers(call, y, how.pop("S", None), *taken)
        mel = _mel(call, spectra, sr, n_fft, {"norm": mel_norm, **how})
        logs = _decibels(call, mel, 1.0, 1e-10, 80.0)
    else:
        given = call.given(S)
        call.need(given.dtype.kind == "f" and given.ndim > 1 and given.size, "no decibels")
        logs = call.tensor(given)
        call.promise_products(logs)
    basis = scipy("fft").dct(np.eye(logs.shape[-2]), axis=0, type=dct_type, norm=norm)[:n_mfcc]
    if lifter:
        places = np.arange(1, 1 + len(basis))
        basis = basis * (1 + lifter / 2 * np.sin(np.pi * places / lifter))[:, None]
    return to_array(call.tensor(basis).to(logs.dtype) @ logs)


def preemphasis(call: Call, y: Any, coef: Any, zi: Any, return_zf: Any) -> Any:
    """Compute `librosa.effects.preemphasis` of a sound without a state."""
    sound = _sound(call, y)
    call.need(zi is None and not return_zf, "the filter has a state")
    call.need(isinstance(coef, (int, float)), f"the coefficient is {coef!r}")
    call.need(sound.shape[-1] > 1, "it is too short")
    call.promise("tolerance")
    values = call.tensor(sound)
    # What would come before, if the sound went on as it begins.
    first = values[..., :1] + (2 * values[..., :1] - values[..., 1:2])
    return to_array(torch.cat((first, values[..., 1:] - coef * values[..., :-1]), -1))


def resample(
    call: Call,
    y: Any,
    orig_sr: Any,
    target_sr: Any,
    res_type: Any,
    fix: Any,
    scale: Any,
    axis: Any,
    kwargs: dict[str, Any],
) -> Any:
    """Compute `librosa.resample` where that is scipy's own."""
    sound = _sound(call, y)
    number = call.axis(axis, sound.ndim)
    call.need(res_type in {"fft", "scipy", "polyphase"}, f"{res_type!r} has a filter of its own")
    call.need(orig_sr > 0 < target_sr and orig_sr != target_sr, "the rates are the same, or none")
    call.need(np.isfinite(sound).all(), "there are infinities or NaNs")
    call.need(fix and not kwargs, "the length is another one")
    ratio = float(target_sr) / orig_sr
    wanted = math.ceil(sound.shape[number] * ratio)
    if res_type == "polyphase":
        call.need(int(orig_sr) == orig_sr and int(target_sr) == target_sr, "no whole rates")
        rates = int(target_sr), int(orig_sr)
        found = resampling.resample_poly(
            call, sound, *rates, number, ("kaiser", 5.0), "constant", None
        )
        call.need(found.shape[number] == wanted, "the length is another one")
    else:
        found = resampling.resample(call, sound, wanted, None, number, None, "time")
    return (found / np.sqrt(ratio)).astype(sound.dtype) if scale else found
