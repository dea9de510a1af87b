"""Classes of torchvision and torchaudio whose objects run on moved tensors.

Left out is what draws random numbers of the device's own generator (``v2.GaussianNoise``,
``v2.AugMix``, ``GriffinLim``), runs on the host only (``v2.JPEG``), decides by what it computes
(``v2.RandomIoUCrop``, ``v2.SanitizeBoundingBoxes``), would take a large matrix with it
(``LinearTransformation``), or needs each value for the next one (``Deemphasis``, ``Loudness``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from devicecore.migrate.strategies.module_strategy import Classes, ModuleStrategy

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from devicecore.kernels import Exactness

_V1: Final = "torchvision.transforms.transforms"
_V2: Final = "torchvision.transforms.v2"
_CONTAINERS: Final = ("Compose", "RandomApply", "RandomChoice", "RandomOrder")

_VISION: Final[dict[tuple[str, Exactness], tuple[str, ...]]] = {
    (_V1, "exact"): (
        "CenterCrop", "FiveCrop", "Pad", "RandomCrop", "RandomErasing", "RandomHorizontalFlip",
        "RandomInvert", "RandomPosterize", "RandomSolarize", "RandomVerticalFlip", "TenCrop",
    ),
    (_V1, "close"): (
        "ColorJitter", "ConvertImageDtype", "ElasticTransform", "GaussianBlur", "Grayscale",
        "Normalize", "RandomAdjustSharpness", "RandomAffine", "RandomAutocontrast",
        "RandomEqualize", "RandomGrayscale", "RandomPerspective", "RandomResizedCrop",
        "RandomRotation", "Resize",
    ),
    ("torchvision.transforms.autoaugment", "close"): (
        "AutoAugment", "RandAugment", "TrivialAugmentWide",
    ),
    (f"{_V2}._augment", "exact"): ("RandomErasing",),
    (f"{_V2}._augment", "close"): ("CutMix", "MixUp"),
    (f"{_V2}._auto_augment", "close"): ("AutoAugment", "RandAugment", "TrivialAugmentWide"),
    (f"{_V2}._color", "exact"): (
        "RGB", "RandomChannelPermutation", "RandomInvert", "RandomPosterize", "RandomSolarize",
    ),
    (f"{_V2}._color", "close"): (
        "ColorJitter", "Grayscale", "RandomAdjustSharpness", "RandomAutocontrast",
        "RandomEqualize", "RandomGrayscale", "RandomPhotometricDistort",
    ),
    (f"{_V2}._geometry", "exact"): (
        "CenterCrop", "FiveCrop", "Pad", "RandomCrop", "RandomHorizontalFlip",
        "RandomVerticalFlip", "RandomZoomOut", "TenCrop",
    ),
    (f"{_V2}._geometry", "close"): (
        "ElasticTransform", "RandomAffine", "RandomPerspective", "RandomResize",
        "RandomResizedCrop", "RandomRotation", "RandomShortestSize", "Resize", "ScaleJitter",
    ),
    (f"{_V2}._misc", "exact"): ("Identity",),
    (f"{_V2}._misc", "close"): ("ConvertImageDtype", "GaussianBlur", "Normalize", "ToDtype"),
    (f"{_V2}._type_conversion", "exact"): ("ToPureTensor",),
}  # fmt: skip

_AUDIO: Final[dict[tuple[str, Exactness], tuple[str, ...]]] = {
    ("torchaudio.transforms._transforms", "exact"): ("FrequencyMasking", "TimeMasking"),
    ("torchaudio.transforms._transforms", "tolerance"): (
        "AddNoise", "AmplitudeToDB", "FFTConvolve", "Fade", "InverseSpectrogram", "Preemphasis",
        "SpecAugment", "SpectralCentroid", "Spectrogram", "Vol",
    ),
    # Products and convolutions of GPUs may be in less than single precision.
    ("torchaudio.transforms._transforms", "close"): (
        "ComputeDeltas", "Convolve", "LFCC", "MFCC", "MelScale", "MelSpectrogram", "Resample",
        "Speed", "SpeedPerturbation", "TimeStretch",
    ),
}  # fmt: skip


def _named(module: str, names: Iterable[str]) -> Iterator[str]:
    return (f"{module}.{name}" for name in names)


def _promises(table: dict[tuple[str, Exactness], tuple[str, ...]]) -> dict[str, Exactness]:
    return {
        name: promise
        for (module, promise), names in table.items()
        for name in _named(module, names)
    }


CLASSES: Final[dict[str, Classes]] = {
    "torchaudio": Classes(
        _promises(_AUDIO), refused={"iid_masks": "its masks are drawn by the device's generator"}
    ),
    "torchvision": Classes(
        _promises(_VISION),
        containers=frozenset(
            (*_named(_V1, _CONTAINERS), *_named(f"{_V2}._container", _CONTAINERS))
        ),
        conversions=frozenset(
            (
                *_named(_V1, ("PILToTensor", "ToTensor")),
                *_named(f"{_V2}._type_conversion", ("PILToTensor", "ToImage")),
                f"{_V2}._deprecated.ToTensor",
            )
        ),
    ),
}
"""The classes of each package."""

# Those of torchvision's old classes that are no modules of torch.
_CALLED: Final = frozenset(_named(_V1, {*_CONTAINERS} - {"RandomApply"}))


def strategies_of(package: str) -> dict[str, ModuleStrategy]:
    """Return the strategies for calls of the objects of a package; nothing is imported."""
    classes = CLASSES.get(package, Classes({}))
    found: dict[str, ModuleStrategy] = {}
    for name in (*classes.promises, *classes.containers):
        method = f"{name}.{'__call__' if name in _CALLED else 'forward'}"
        found[method] = ModuleStrategy(method, classes)
    return found
