"""The catalogue of functions that torch can compute, by package."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from devicecore.migrate.strategies import torchvision
from devicecore.migrate.strategies.torch_strategy import MovedStrategy, TorchStrategy
from devicecore.migrate.strategies.transformers import PadStrategy

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from devicecore.kernels import Exactness
    from devicecore.migrate.calls.strategy import Strategy

# Names with what computes them: a module of ours and a function in it, by which they are called.
COMPUTED: Final[Mapping[str, Mapping[str, str]]] = {
    "PIL": {
        "PIL.Image.Image.resize": "pillow:resize",
    },
    "librosa": {
        "librosa.core.audio.resample": "librosa:resample",
        "librosa.core.spectrum.amplitude_to_db": "librosa:amplitude_to_db",
        "librosa.core.spectrum.istft": "librosa:istft",
        "librosa.core.spectrum.power_to_db": "librosa:power_to_db",
        "librosa.core.spectrum.stft": "librosa:stft",
        "librosa.effects.preemphasis": "librosa:preemphasis",
        "librosa.feature.spectral.melspectrogram": "librosa:melspectrogram",
        "librosa.feature.spectral.mfcc": "librosa:mfcc",
    },
    "numpy": {
        "numpy.argsort": "numpy.reductions:argsort",
        "numpy.dot": "numpy.linalg:dot",
        "numpy.einsum": "numpy.linalg:einsum",
        "numpy.fft.fft": "numpy.fft:fft",
        "numpy.fft.fft2": "numpy.fft:fftn",
        "numpy.fft.fftn": "numpy.fft:fftn",
        "numpy.fft.ifft": "numpy.fft:fft",
        "numpy.fft.ifft2": "numpy.fft:fftn",
        "numpy.fft.ifftn": "numpy.fft:fftn",
        "numpy.fft.irfft": "numpy.fft:fft",
        "numpy.fft.rfft": "numpy.fft:fft",
        "numpy.inner": "numpy.linalg:inner",
        "numpy.linalg.cholesky": "numpy.linalg:cholesky",
        "numpy.linalg.det": "numpy.linalg:det",
        "numpy.linalg.eigvalsh": "numpy.linalg:eigvalsh",
        "numpy.linalg.inv": "numpy.linalg:inv",
        "numpy.linalg.norm": "numpy.linalg:norm",
        "numpy.linalg.solve": "numpy.linalg:solve",
        "numpy.linalg.svd": "numpy.linalg:svd",
        "numpy.matmul": "numpy.linalg:matmul",
        "numpy.mean": "numpy.reductions:mean",
        "numpy.sort": "numpy.reductions:sort",
        "numpy.std": "numpy.reductions:std",
        "numpy.sum": "numpy.reductions:total",
        "numpy.tensordot": "numpy.linalg:tensordot",
        "numpy.var": "numpy.reductions:var",
    },
    "scipy": {
        "scipy.signal.convolve": "scipy.convolution:convolve",
        "scipy.signal.correlate": "scipy.convolution:correlate",
        "scipy.signal.detrend": "scipy.spectral:detrend",
        "scipy.signal.fftconvolve": "scipy.convolution:fftconvolve",
        "scipy.signal.filtfilt": "scipy.iir:filtfilt",
        "scipy.signal.hilbert": "scipy.spectral:hilbert",
        "scipy.signal.istft": "scipy.spectral:istft",
        "scipy.signal.lfilter": "scipy.iir:lfilter",
        "scipy.signal.oaconvolve": "scipy.convolution:fftconvolve",
        "scipy.signal.resample": "scipy.resampling:resample",
        "scipy.signal.resample_poly": "scipy.resampling:resample_poly",
        "scipy.signal.sosfilt": "scipy.iir:sosfilt",
        "scipy.signal.sosfiltfilt": "scipy.iir:sosfiltfilt",
        "scipy.signal.spectrogram": "scipy.spectral:spectrogram",
        "scipy.signal.stft": "scipy.spectral:stft",
        "scipy.signal.upfirdn": "scipy.resampling:upfirdn",
        "scipy.spatial.distance.cdist": "scipy.distance:cdist",
        "scipy.spatial.distance.pdist": "scipy.distance:pdist",
    },
    "skimage": {
        "skimage.transform._warps.resize": "scikit_image:resize",
    },
    "sklearn": {
        "sklearn.metrics.pairwise.cosine_similarity": "scipy.distance:cosine_similarity",
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
        # Convolutions of GPUs may be in less than single precision, whatever products are in.
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
    found |= torchvision.strategies_of(package)
    return found | {name: PadStrategy(name) for name in _PADS.get(package, ())}


def groups() -> dict[str, Callable[[], Mapping[str, Strategy]]]:
    """Return what makes the strategies of each package."""
    packages = sorted({*COMPUTED, *MOVED, *_PADS})
    return {package: partial(strategies_of, package) for package in packages}
