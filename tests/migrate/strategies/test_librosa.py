"""librosa by torch; where it is not installed nothing of this is proved."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
librosa = pytest.importorskip("librosa")

from devicecore.migrate import PipelineMigrator  # noqa: E402 - after torch
from tests.migrate.comparing import Strategies  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Callable

SPECTRA = Strategies(importlib.import_module("librosa.core.spectrum"), "librosa.core.spectrum")
AUDIO = Strategies(importlib.import_module("librosa.core.audio"), "librosa.core.audio")
FEATURES = Strategies(
    importlib.import_module("librosa.feature.spectral"), "librosa.feature.spectral"
)
EFFECTS = Strategies(importlib.import_module("librosa.effects"), "librosa.effects")
PLAN: dict[str, Any] = {"device": "cpu", "kernel": "torch", "accept": "tolerance"}


def sound(*shape: int, dtype: str = "f") -> Any:
    return np.random.default_rng(0).standard_normal(shape).astype(dtype)


CUTS: tuple[dict[str, Any], ...] = (
    {"n_fft": 512},
    {"n_fft": 511, "hop_length": 100},
    {"n_fft": 256, "hop_length": 64, "win_length": 200, "window": "hamming"},
    {"n_fft": 64, "window": np.hanning(64)},
    {"n_fft": 64, "window": ("kaiser", 4.0), "hop_length": 64},
)


@pytest.mark.parametrize("dtype", "fd")
@pytest.mark.parametrize("cut", CUTS, ids=range(5))
def test_spectra(dtype: str, cut: dict[str, Any]) -> None:
    y = sound(2, 3000, dtype=dtype)
    for mode in ("constant", "reflect", "edge"):
        SPECTRA.check("stft", y, **cut, pad_mode=mode)
    SPECTRA.check("stft", y[0], **cut, center=False)
    found = SPECTRA.compute("stft", y, **cut)
    assert found.flags["F_CONTIGUOUS"] == librosa.stft(y, **cut).flags["F_CONTIGUOUS"]


@pytest.mark.parametrize("dtype", "fd")
@pytest.mark.parametrize("cut", [CUTS[0], CUTS[2]], ids=range(2))
@pytest.mark.parametrize("center", [True, False])
def test_sounds_of_spectra(dtype: str, cut: dict[str, Any], center: bool) -> None:
    spectra = librosa.stft(sound(2, 3000, dtype=dtype), **cut)
    how = {name: value for name, value in cut.items() if name != "n_fft"}
    for length in (None, 1000, 2900):
        # Where hardly a window reaches, what is divided is what rounding has left of it.
        if center or "window" in how:
            SPECTRA.check("istft", spectra, **how, center=center, length=length)
        else:
            SPECTRA.refuse("hardly a window", "istft", spectra, center=False, length=length)
    SPECTRA.check(
        "istft", spectra, hop_length=64, window=np.ones(spectra.shape[-2] * 2 - 2), length=9999
    )


@pytest.mark.parametrize("dtype", "fd")
def test_decibels(dtype: str) -> None:
    powers = np.abs(sound(3, 40, dtype=dtype)) ** 8
    for how in ({}, {"ref": np.max}, {"ref": 2, "top_db": None}, {"amin": 1e-3, "top_db": 20}):
        SPECTRA.check("power_to_db", powers, **how)
        SPECTRA.check("amplitude_to_db", powers, **how)


@pytest.mark.parametrize("dtype", "fd")
def test_mel_spectra(dtype: str) -> None:
    y = sound(2, 6000, dtype=dtype)
    powers = Strategies(FEATURES.owner, FEATURES.name, rounding=2e-5)
    powers.check("melspectrogram", y=y, sr=16000)
    powers.check("melspectrogram", y=y[0], sr=8000, n_fft=400, hop_length=160, n_mels=40, fmax=3000)
    powers.check("melspectrogram", y=y, power=1, center=False, htk=True, norm=None)
    powers.check("melspectrogram", S=np.abs(librosa.stft(y)), sr=16000)
    powers.check("mfcc", y=y, sr=16000)
    powers.check("mfcc", y=y, sr=16000, n_mfcc=13, n_fft=400, hop_length=160, n_mels=40, lifter=22)
    powers.check("mfcc", S=sound(40, 30, dtype=dtype), n_mfcc=60, dct_type=3, norm=None)


@pytest.mark.parametrize("dtype", "fd")
def test_emphasis_and_rates(dtype: str) -> None:
    y = sound(2, 3000, dtype=dtype)
    EFFECTS.check("preemphasis", y)
    EFFECTS.check("preemphasis", y[0], coef=0.5)
    for kind in ("fft", "scipy", "polyphase"):
        AUDIO.check("resample", y, orig_sr=16000, target_sr=22050, res_type=kind)
        AUDIO.check("resample", y.T, orig_sr=3, target_sr=2, res_type=kind, scale=True, axis=0)


def test_what_is_left_to_librosa() -> None:
    y = sound(3000)
    AUDIO.refuse("a filter of its own", "resample", y, orig_sr=2, target_sr=3)
    AUDIO.refuse(
        "the length is another", "resample", y, orig_sr=2, target_sr=3, res_type="fft", fix=False
    )
    AUDIO.refuse("are the same", "resample", y, orig_sr=2, target_sr=2, res_type="fft")
    SPECTRA.refuse("it is too short", "stft", y, n_fft=4096)
    SPECTRA.refuse("it is no sound", "stft", y.astype(int))
    SPECTRA.refuse("infinities or NaNs", "stft", y * np.inf)
    SPECTRA.refuse("the padding is 'wrap'", "stft", y, pad_mode="wrap")
    SPECTRA.refuse("the window is a function", "stft", y, window=np.hanning)
    SPECTRA.refuse("of another kind", "stft", y, dtype=np.complex128)
    SPECTRA.refuse("a function of its own", "power_to_db", y**2, ref=np.median)
    EFFECTS.refuse("has a state", "preemphasis", y, return_zf=True)
    strict = Strategies(SPECTRA.owner, SPECTRA.name, accept="exact")
    strict.refuse("only promised to be tolerance", "stft", y)


SOURCE = """
import librosa

class Sounds:
    def __getitem__(self, place):
        return librosa.power_to_db(librosa.feature.melspectrogram(y=self.sound, sr=16000))
"""


def test_a_plan_for_librosas_own_names_and_for_a_frame(write: Callable[..., None]) -> None:
    write(made_sounds=SOURCE)
    sounds = importlib.import_module("made_sounds").Sounds()
    sounds.sound = sound(4000)
    expected = sounds[0]
    for plan in ({"librosa.feature.melspectrogram": PLAN}, {"Sounds/__getitem__": PLAN}):
        with PipelineMigrator(plan, verify=1) as migrator:
            found = sounds[0]
        np.testing.assert_allclose(found, expected, atol=1e-3)
        rows = {row.path.rpartition("/")[2]: row.migrated for row in migrator.report().rows}
        assert rows["librosa.feature.spectral:melspectrogram"] == 1
        assert ("librosa.core.spectrum:power_to_db" in rows) == ("Sounds/__getitem__" in plan)
