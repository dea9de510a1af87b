"""scipy.signal by torch: what scipy itself returns, or a refusal."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

torch = pytest.importorskip("torch")
signal = pytest.importorskip("scipy.signal")

from tests.migrate.comparing import Strategies  # noqa: E402 - after torch

if TYPE_CHECKING:
    from pathlib import Path

NAME = "scipy.signal"
NEAR = Strategies(signal, NAME)
SUMS = Strategies(signal, NAME, scale=30)
EXACT = Strategies(signal, NAME, accept="exact")
DTYPES = ("f", "d", "F", "D", "i", "h")
MODES = ("full", "same", "valid")
CONVOLUTIONS = ("convolve", "correlate", "fftconvolve", "oaconvolve")


def noise(*shape: int, dtype: str = "d") -> Any:
    values = np.random.default_rng(0).standard_normal((2, *shape)) * 9
    return (values[0] + 1j * values[1] if dtype in "FD" else values[0]).astype(dtype)


# --- convolution ----------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", "fdFD")
@pytest.mark.parametrize("name", CONVOLUTIONS)
@pytest.mark.parametrize("mode", MODES)
def test_sums_of_products(name: str, mode: str, dtype: str) -> None:
    long, short = noise(3, 90, dtype=dtype), noise(2, 25, dtype=dtype)
    sums = Strategies(signal, NAME, scale=3000)
    for one, two in ((long, short), (short, long), (long[0], short[1]), (short[1], long[0])):
        sums.check(name, one, two, mode)
    sums.check(name, long.T, short[::-1, ::-2].T, mode)


@pytest.mark.parametrize(("one", "two"), list(product("bBhilfdFD", repeat=2)))
def test_sums_of_several_types_have_numpys_type(one: str, two: str) -> None:
    SUMS.check("convolve", (np.arange(9) % 5).astype(one), np.ones(4, two))
    # Of two precisions scipy transforms each in its own.
    rough = Strategies(signal, NAME, rounding=2e-5)
    rough.check("fftconvolve", np.arange(9, dtype=one), np.ones(4, two), "same")


def test_lists_are_arrays() -> None:
    SUMS.check("convolve", [1, 2, 3], (0.5, 1))


@given(
    st.lists(st.integers(-128, 127), min_size=1, max_size=40),
    st.lists(st.integers(-128, 127), min_size=1, max_size=12),
    st.sampled_from(("convolve", "correlate")),
    st.sampled_from(("full", "same")),
    st.sampled_from("il"),
)
def test_sums_of_integers_are_exact(
    one: list[int], two: list[int], name: str, mode: str, dtype: str
) -> None:
    if len(one) == 1 or len(two) == 1:
        EXACT.refuse("no axis to sum along", name, np.array(one, dtype), np.array(two, dtype))
    else:
        EXACT.check(name, np.array(one, dtype), np.array(two, dtype), mode)


def test_integers_that_do_not_fit() -> None:
    EXACT.refuse("may be too large", "convolve", np.full(9, 100, "B"), np.full(4, 100, "B"))
    EXACT.refuse("may be too large", "convolve", np.full(9, 2**40), np.full(4, 2**20))
    EXACT.refuse("may be too large", "convolve", np.full(9, -(2**63)), np.ones(4, int))


def test_memory_maps(tmp_path: Path) -> None:
    path = tmp_path / "numbers"
    kept = np.memmap(path, np.float64, "w+", shape=(40,))
    kept[:] = noise(40)
    SUMS.check("convolve", kept, np.ones(3))
    NEAR.check("resample", np.memmap(path, np.float64, "r"), 30)


def test_convolutions_along_some_axes() -> None:
    one, two = noise(3, 1, 30), noise(1, 4, 7)
    for axes in (2, [2], [-1], (0, 2)):
        SUMS.check("fftconvolve", one, two, axes=axes)
    SUMS.check("fftconvolve", noise(3, 8, 30), noise(3, 5, 7), "same", axes=[1, 2])
    SUMS.check("fftconvolve", noise(3, 8, 30), noise(3, 5, 7), "valid", axes=[2, 1])


def test_convolutions_that_are_left_to_scipy() -> None:
    x = noise(9)
    for name in CONVOLUTIONS:
        NEAR.refuse("different axes, or none", name, x, x[None])
        NEAR.refuse("different axes, or none", name, 2.0, 3.0)
        NEAR.refuse("an array is empty", name, x, np.zeros(0))
        NEAR.refuse("the mode is 'both'", name, x, x, "both")
        NEAR.refuse("neither fits", name, noise(3, 9), noise(9, 3), "valid")
        EXACT.refuse("only promised to be tolerance", name, x, x)
    NEAR.refuse("there is no axis 3", "fftconvolve", x, x, axes=3)
    NEAR.refuse("an axis is there twice", "fftconvolve", x[None], x[None], axes=(1, -1))
    NEAR.refuse("the shapes do not fit", "fftconvolve", noise(2, 9), noise(3, 9), axes=1)
    NEAR.refuse("no axis to sum along", "fftconvolve", x, x[:1])
    NEAR.refuse("sums of bools", "convolve", x > 0, x > 1)
    NEAR.refuse("different types", "convolve", noise(3, 9, dtype="f"), noise(2, 3))
    NEAR.refuse("the method is 'slow'", "convolve", x, x, method="slow")
    NEAR.refuse("infinities or NaNs", "convolve", np.array([1, np.nan, 3]), np.ones(2))
    NEAR.refuse("torch has no float16", "convolve", x.astype("e"), x.astype("e"))
    NEAR.refuse("torch has no >f8", "convolve", x.astype(">f8"), x)
    NEAR.refuse("an argument is a MaskedArray", "convolve", np.ma.array(x), x)
    NEAR.refuse("an argument is a Tensor", "convolve", torch.ones(3), x)
    NEAR.refuse("missing a required argument", "convolve", x)


# --- rates ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("count", [1, 2, 49, 50, 99, 100, 101, 150, 199, 200, 201])
def test_other_rates_by_a_spectrum(dtype: str, count: int) -> None:
    x = noise(3, 100, dtype=dtype)
    NEAR.check("resample", x, count, axis=1)
    NEAR.check("resample", x[0, :99], count)
    NEAR.check("resample", x.T[::-1], count)
    rough = Strategies(signal, NAME, rounding=2e-5)
    rough.check("resample", x, count, t=np.arange(100) / 7, axis=-1, window="hamming")
    rough.check("resample", x[0], count, window=np.hanning(100))
    if dtype in "fF":
        NEAR.refuse("the length is numpy's", "resample", x, np.int64(count))
    else:
        rough.check("resample", x, np.int64(count), axis=1)
    if dtype in "FD":
        NEAR.check("resample", x, count, axis=1, domain="freq")


def test_spectral_rates_that_are_left_to_scipy() -> None:
    x = noise(9)
    for count in (0, -3, 2.5, "4"):
        NEAR.refuse("the length is", "resample", x, count)
    NEAR.refuse("the window is a function", "resample", x, 5, window=np.ones_like)
    NEAR.refuse("another length", "resample", x, 5, window=np.ones(8))
    NEAR.refuse("the window is int64", "resample", x, 5, window=np.ones(9, int))
    NEAR.refuse("no spectrum", "resample", x, 5, domain="freq")
    NEAR.refuse("there is no axis 1", "resample", x, 5, axis=1)
    NEAR.refuse("no numbers", "resample", x[:0], 5)
    EXACT.refuse("only promised to be tolerance", "resample", x, 5)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    ("up", "down"), [(3, 2), (2, 3), (160, 441), (441, 160), (1, 4), (5, 1), (2, 4), (7, 7)]
)
def test_other_rates_by_a_filter(dtype: str, up: int, down: int) -> None:
    x = noise(2, 120, dtype=dtype)
    NEAR.check("resample_poly", x, up, down, axis=1)
    NEAR.check("resample_poly", x.T, up, down)
    NEAR.check("resample_poly", x[0], up, down, window=[0.25, 1, 0.5, 0.125])
    for padtype in ("mean", "median", "minimum", "maximum") if dtype not in "FD" else ():
        NEAR.check("resample_poly", x, up, down, axis=-1, padtype=padtype)
    NEAR.check("upfirdn", np.array([1, 0.5, -2], dtype), x, up, down)
    NEAR.check("upfirdn", [1], x, up, down, axis=0)


@given(st.integers(1, 9), st.integers(1, 9), st.integers(1, 30), st.integers(1, 30))
def test_any_filter_and_rates(up: int, down: int, taps: int, length: int) -> None:
    SUMS.check("upfirdn", noise(taps), noise(length), up, down)


def test_filtered_rates_that_are_left_to_scipy() -> None:
    x = noise(9)
    NEAR.refuse("no whole numbers", "resample_poly", x, 1.5, 2)
    NEAR.refuse("no whole numbers", "resample_poly", x, 0, 2)
    NEAR.refuse("the padding is 'line'", "resample_poly", x, 3, 2, padtype="line")
    NEAR.refuse("not zero around", "resample_poly", x, 3, 2, cval=1.0)
    NEAR.refuse("not zero around", "upfirdn", [1.0], x, mode="edge")
    NEAR.refuse("too large factors", "resample_poly", x, 9973, 9967)
    NEAR.refuse("no numbers", "resample_poly", x > 0, 3, 2)


# --- spectra --------------------------------------------------------------------------------------

CUTS: tuple[dict[str, Any], ...] = (
    {},
    {"nperseg": 63},
    {"nperseg": 64, "noverlap": 48, "nfft": 100},
    {"nperseg": 50, "window": "hamming"},
    {"window": np.hanning(33), "nperseg": 33},
    {"nperseg": 1, "noverlap": 0, "window": "boxcar"},
)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("boundary", ["even", "odd", "constant", "zeros", None])
@pytest.mark.parametrize("padded", [True, False])
def test_spectra_of_parts(dtype: str, boundary: str | None, padded: bool) -> None:
    x = noise(2, 300, dtype=dtype)
    how = {"boundary": boundary, "padded": padded, "return_onesided": dtype not in "FD"}
    for cut, detrend in product(CUTS, (False, "constant", "linear")):
        NEAR.check("stft", x, 16000, **how, **cut, detrend=detrend)
    NEAR.check("stft", x.T[::-1], nperseg=32, scaling="psd", axis=0, **how)
    NEAR.check("stft", x[0], nperseg=32, **how)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("mode", ["psd", "complex", "magnitude"])
def test_spectrograms(dtype: str, mode: str) -> None:
    x = noise(300, 2, dtype=dtype)
    squares = Strategies(signal, NAME, scale=100)
    for cut, scaling in product(CUTS, ("density", "spectrum")):
        how = {"mode": mode, "scaling": scaling, "return_onesided": dtype not in "FD"}
        squares.check("spectrogram", x, 16000, axis=0, **how, **cut)


@pytest.mark.parametrize("dtype", "fdFD")
@pytest.mark.parametrize("boundary", [True, False])
def test_signals_of_spectra(dtype: str, boundary: bool) -> None:
    x = noise(2, 400, dtype=dtype)
    is_real = dtype in "fd"
    for cut in ({}, {"nperseg": 63}, {"nperseg": 64, "noverlap": 48, "nfft": 100}):
        window = "hamming"  # which is zero nowhere
        spectra = signal.stft(x, window=window, return_onesided=is_real, **cut)[2]
        how = {"window": window, "input_onesided": is_real, "boundary": boundary, **cut}
        NEAR.check("istft", spectra, 8000, **how)
        NEAR.check("istft", spectra.transpose(2, 0, 1), time_axis=0, freq_axis=-1, **how)
        NEAR.check("istft", spectra[0], scaling="psd", **how)
        # What is no spectrum of a real signal counts for nothing.
        NEAR.check("istft", spectra * np.exp(0.3j).astype(spectra.dtype), **how)


def test_spectra_that_are_left_to_scipy() -> None:
    x = noise(99)
    for name in ("stft", "spectrogram"):
        NEAR.refuse("parts longer than the signal", name, x, nperseg=100)
        NEAR.refuse("parts longer than the signal", name, x, window=np.ones(100))
        NEAR.refuse("has two sides", name, x + 1j, nperseg=32)
        NEAR.refuse("overlap as a whole", name, x, nperseg=32, noverlap=32)
        NEAR.refuse("shorter than the parts", name, x, nperseg=32, nfft=31)
        NEAR.refuse("detrending is its own", name, x, nperseg=32, detrend=np.sign)
        NEAR.refuse("no numbers", name, x[:0], nperseg=32)
        NEAR.refuse("it is no array", name, x.tolist(), nperseg=32)
        EXACT.refuse("only promised to be tolerance", name, x, nperseg=32)
    NEAR.refuse("the mode is 'phase'", "spectrogram", x, nperseg=32, mode="phase")
    NEAR.refuse("leave gaps", "istft", noise(9, 5, dtype="D"), noverlap=0, boundary=False)
    NEAR.refuse("have one axis", "istft", noise(9, 5, dtype="D"), time_axis=0, freq_axis=-2)
    NEAR.refuse("no spectra", "istft", noise(9, 5))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_signals_without_their_trend(dtype: str, axis: int) -> None:
    x = noise(40, 41, dtype=dtype)
    for kind in ("linear", "l", "constant", "c"):
        SUMS.check("detrend", x, axis, kind)
    SUMS.check("detrend", x, axis=axis, bp=[7, 8, 30])
    SUMS.check("detrend", x[::2].T, axis=axis, bp=5)


def test_trends_that_are_left_to_scipy() -> None:
    x = noise(9)
    NEAR.refuse("may be overwritten", "detrend", x, overwrite_data=True)
    NEAR.refuse("a break is outside", "detrend", x, bp=10)
    NEAR.refuse("between values", "detrend", x, bp=[2.5])
    NEAR.refuse("the type is 'square'", "detrend", x, type="square")


@pytest.mark.parametrize("dtype", "fdi")
def test_analytic_signals(dtype: str) -> None:
    x = noise(6, 31, dtype=dtype)
    for count, axis in ((None, -1), (None, 0), (20, 1), (40, 1), (1, 0)):
        NEAR.check("hilbert", x, count, axis)
    NEAR.refuse("no real numbers", "hilbert", x + 1j)
    NEAR.refuse("the length is 0", "hilbert", x, 0)
