"""The functions that torch can compute, by the packages that they are of."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from devicecore.migrate.strategies import transforms
from devicecore.migrate.strategies.calls import MovedStrategy, TorchStrategy
from devicecore.migrate.strategies.text.padding import PadStrategy

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from devicecore.kernels import Exactness
    from devicecore.migrate.strategy import Strategy

# Names with what computes them: a module of ours and a function in it, by which they are called.
COMPUTED: Final[Mapping[str, Mapping[str, str]]] = {
    "PIL": {
        "PIL.Image.Image.resize": "imaging.pillow:resize",
    },
    "librosa": {
        "librosa.core.audio.resample": "audio.sounds:resample",
        "librosa.core.spectrum.amplitude_to_db": "audio.sounds:amplitude_to_db",
        "librosa.core.spectrum.istft": "audio.sounds:istft",
        "librosa.core.spectrum.power_to_db": "audio.sounds:power_to_db",
        "librosa.core.spectrum.stft": "audio.sounds:stft",
        "librosa.effects.preemphasis": "audio.sounds:preemphasis",
        "librosa.feature.spectral.melspectrogram": "audio.sounds:melspectrogram",
        "librosa.feature.spectral.mfcc": "audio.sounds:mfcc",
    },
    "numpy": {
        "numpy.argsort": "arrays.reducing:argsort",
        "numpy.dot": "arrays.products:dot",
        "numpy.einsum": "arrays.products:einsum",
        "numpy.fft.fft": "arrays.fourier:fft",
        "numpy.fft.fft2": "arrays.fourier:fftn",
        "numpy.fft.fftn": "arrays.fourier:fftn",
        "numpy.fft.ifft": "arrays.fourier:fft",
        "numpy.fft.ifft2": "arrays.fourier:fftn",
        "numpy.fft.ifftn": "arrays.fourier:fftn",
        "numpy.fft.irfft": "arrays.fourier:fft",
        "numpy.fft.rfft": "arrays.fourier:fft",
        "numpy.inner": "arrays.products:inner",
        "numpy.linalg.cholesky": "arrays.products:cholesky",
        "numpy.linalg.det": "arrays.products:det",
        "numpy.linalg.eigvalsh": "arrays.products:eigvalsh",
        "numpy.linalg.inv": "arrays.products:inv",
        "numpy.linalg.norm": "arrays.products:norm",
        "numpy.linalg.solve": "arrays.products:solve",
        "numpy.linalg.svd": "arrays.products:svd",
        "numpy.matmul": "arrays.products:matmul",
        "numpy.mean": "arrays.reducing:mean",
        "numpy.sort": "arrays.reducing:sort",
        "numpy.std": "arrays.reducing:std",
        "numpy.sum": "arrays.reducing:total",
        "numpy.tensordot": "arrays.products:tensordot",
        "numpy.var": "arrays.reducing:var",
    },
    "scipy": {
        "scipy.signal.convolve": "signals.convolving:convolve",
        "scipy.signal.correlate": "signals.convolving:correlate",
        "scipy.signal.detrend": "signals.spectra:detrend",
        "scipy.signal.fftconvolve": "signals.convolving:fftconvolve",
        "scipy.signal.filtfilt": "signals.recursive:filtfilt",
        "scipy.signal.hilbert": "signals.spectra:hilbert",
        "scipy.signal.istft": "signals.spectra:istft",
        "scipy.signal.lfilter": "signals.recursive:lfilter",
        "scipy.signal.oaconvolve": "signals.convolving:fftconvolve",
        "scipy.signal.resample": "signals.resampling:resample",
        "scipy.signal.resample_poly": "signals.resampling:resample_poly",
        "scipy.signal.sosfilt": "signals.recursive:sosfilt",
        "scipy.signal.sosfiltfilt": "signals.recursive:sosfiltfilt",
        "scipy.signal.spectrogram": "signals.spectra:spectrogram",
        "scipy.signal.stft": "signals.spectra:stft",
        "scipy.signal.upfirdn": "signals.resampling:upfirdn",
        "scipy.spatial.distance.cdist": "text.distances:cdist",
        "scipy.spatial.distance.pdist": "text.distances:pdist",
    },
    "skimage": {
        "skimage.transform._warps.resize": "imaging.scikit:resize",
    },
    "sklearn": {
        "sklearn.metrics.pairwise.cosine_similarity": "text.distances:cosine_similarity",
    },
}

_MOVES: Final = ("crop", "hflip", "pad", "vflip")
_CHANGES: Final = (
    "adjust_brightness", "adjust_contrast", "adjust_hue", "adjust_saturation", "affine",
    "gaussian_blur", "normalize", "perspective", "resize", "resized_crop", "rotate",
)  # fmt: skip


def _of_torchvision(*modules: str) -> dict[str, Exactness]:
    """Return its functions: those that only move pixels, and those that compute others."""
    found: dict[str, Exactness] = {}
    for module in modules:
        found |= {f"torchvision.{module}.{name}": "exact" for name in _MOVES}
        found |= {f"torchvision.{module}.{name}": "close" for name in _CHANGES}
    return found


_CAUSAL_MASK: Final = "torch.nn.modules.transformer.Transformer.generate_square_subsequent_mask"

# Functions that take tensors themselves, with what is promised of them on another device.
MOVED: Final[Mapping[str, Mapping[str, Exactness]]] = {
    "torch": {
        "torch.cdist": "close",
        "torch.nn.functional.cosine_similarity": "tolerance",
        _CAUSAL_MASK: "exact",
        "torch.nn.utils.rnn.pad_sequence": "exact",
        "torch.utils.data.default_collate": "exact",
    },
    "torchaudio": {
        # Convolutions of cards may be in less than single precision, whatever products are in.
        "torchaudio.functional.amplitude_to_DB": "tolerance",
        "torchaudio.functional.compute_deltas": "close",
        "torchaudio.functional.fftconvolve": "tolerance",
        "torchaudio.functional.inverse_spectrogram": "tolerance",
        "torchaudio.functional.preemphasis": "tolerance",
        "torchaudio.functional.resample": "close",
        "torchaudio.functional.spectrogram": "tolerance",
    },
    "torchvision": _of_torchvision("transforms.functional", "transforms.v2.functional"),
}
# Of those what puts its results into shared memory if a worker of a loader calls it.
_NOT_IN_WORKERS: Final = frozenset({"torch.utils.data.default_collate"})
_PADS: Final = {
    "transformers": ("transformers.tokenization_utils_base.PreTrainedTokenizerBase.pad",),
}

IN_FRAMES: Final = frozenset({"PIL", "librosa", "skimage"})
"""The packages whose functions are meant by a plan that names a frame around the calls.

Whoever names a frame means its images and sounds, and not every sum of numpy inside it."""

MODULES: Final[Mapping[str, tuple[str, ...]]] = {
    "PIL": ("PIL.Image",),
    # librosa loads what it has only when that is asked for.
    "librosa": (
        "librosa.core.audio",
        "librosa.core.spectrum",
        "librosa.effects",
        "librosa.feature.spectral",
    ),
    "skimage": ("skimage.transform._warps",),
}
"""Modules below those packages that have such functions, and may be imported after them."""


def strategies_of(package: str) -> dict[str, Strategy]:
    """Return the strategies for the functions of *package*; nothing is imported for that."""
    computed = COMPUTED.get(package, {}).items()
    moved = MOVED.get(package, {}).items()
    found: dict[str, Strategy] = {name: TorchStrategy(name, backend) for name, backend in computed}
    for name, promise in moved:
        found[name] = MovedStrategy(
            name, promise, name not in _NOT_IN_WORKERS, makes_new=name == _CAUSAL_MASK
        )
    found |= transforms.strategies_of(package)
    return found | {name: PadStrategy(name) for name in _PADS.get(package, ())}


def groups() -> dict[str, Callable[[], Mapping[str, Strategy]]]:
    """Return what makes the strategies of each package."""
    packages = sorted({*COMPUTED, *MOVED, *_PADS})
    return {package: partial(strategies_of, package) for package in packages}
