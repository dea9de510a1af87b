"""Transforms of torchvision and torchaudio: every class that has a strategy, by a plan and without.

Where they are not installed, as in the project's own runs, nothing of this is proved.
"""

from __future__ import annotations

import importlib
import random
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from devicecore.migrate import PipelineMigrator  # noqa: E402 - after torch
from devicecore.migrate.strategies.torchvision import CLASSES, strategies_of  # noqa: E402
from tests.migrate.strategies.test_moved_strategy import IMAGE, WAVE, module_of  # noqa: E402

PLAN = {"device": "cpu", "kernel": "torch", "accept": "close"}
# What each class is made with; some need nothing.
GIVEN: dict[str, Any] = {
    "CenterCrop": (20,),
    "ColorJitter": (0.4, 0.4, 0.4, 0.1),
    "ConvertImageDtype": (torch.float32,),
    "CutMix": {"num_classes": 4},
    "FiveCrop": (20,),
    "FrequencyMasking": (20,),
    "GaussianBlur": (3,),
    "MixUp": {"num_classes": 4},
    "Normalize": ([0.5] * 3, [0.2] * 3),
    "Pad": (3,),
    "RandomAdjustSharpness": (2.0,),
    "RandomAffine": (30, (0.1, 0.1), (0.8, 1.2), 10),
    "RandomCrop": (20,),
    "RandomErasing": {"value": "random"},
    "RandomPosterize": (3,),
    "RandomResize": (20, 30),
    "RandomResizedCrop": ((20, 20),),
    "RandomRotation": (30,),
    "RandomShortestSize": ([20, 30],),
    "RandomSolarize": (100,),
    "Resample": (16000, 8000),
    "Resize": ((20, 20),),
    "ScaleJitter": ((40, 40),),
    "SpecAugment": {
        "n_time_masks": 1, "time_mask_param": 9, "n_freq_masks": 1, "freq_mask_param": 9,
        "iid_masks": False,
    },
    "SpectralCentroid": (16000,),
    "Speed": (16000, 1.1),
    "SpeedPerturbation": (16000, [0.9, 1.1]),
    "TenCrop": (20,),
    "TimeMasking": (20,),
    "ToDtype": (torch.float32,),
    "Vol": (0.5,),
}  # fmt: skip
CONTAINERS = ("Compose", "RandomApply", "RandomChoice", "RandomOrder")
OF_SOUNDS = {
    "AddNoise": (WAVE, WAVE.flip(-1), torch.tensor([3.0, 5.0])),
    "Convolve": (WAVE, WAVE[:, :50]),
    "FFTConvolve": (WAVE, WAVE[:, :50]),
}
OF_SPECTRA = (
    "AmplitudeToDB", "ComputeDeltas", "FrequencyMasking", "MelScale", "SpecAugment", "TimeMasking",
)  # fmt: skip


def public(name: str) -> Any:
    """Return the module that programs take a class from."""
    if name.startswith("torchaudio"):
        return module_of("torchaudio.transforms")
    return module_of("torchvision.transforms" + (".v2" if ".v2." in name else ""))


def made(owner: Any, name: str) -> Any:
    """Return an object of a class."""
    if name in CONTAINERS:
        return getattr(owner, name)([made(owner, "Resize"), made(owner, "RandomHorizontalFlip")])
    how = GIVEN.get(name, ())
    return getattr(owner, name)(**how) if isinstance(how, dict) else getattr(owner, name)(*how)


def inputs(owner: Any, name: str) -> tuple[Any, ...]:
    """Return what an object of a class is called with."""
    if name in ("CutMix", "MixUp"):
        return torch.stack([IMAGE, IMAGE.flip(-1)]).float(), torch.tensor([1, 3])
    if not owner.__name__.startswith("torchaudio"):
        return (IMAGE / 255 if name in ("Normalize", "RandomAutocontrast") else IMAGE,)
    if name in ("InverseSpectrogram", "TimeStretch"):
        spectrum = owner.Spectrogram(power=None)(WAVE)
        return (spectrum, 1.2) if name == "TimeStretch" else (spectrum,)
    return (owner.Spectrogram()(WAVE),) if name in OF_SPECTRA else OF_SOUNDS.get(name, (WAVE,))


def seeded(transform: Any, given: tuple[Any, ...]) -> list[Any]:
    """Return several results, and the random numbers that come after them."""
    torch.manual_seed(5)
    random.seed(5)
    results = [transform(*given) for _ in range(4)]
    return [*results, torch.rand(2), random.random()]


def assert_same(found: Any, expected: Any) -> None:
    torch.testing.assert_close(found, expected, rtol=0, atol=0, equal_nan=True)


NAMES = sorted({**strategies_of("torchvision"), **strategies_of("torchaudio")})


@pytest.mark.every_case
@pytest.mark.filterwarnings("ignore")  # theirs, of empty filters and of names of theirs
@pytest.mark.parametrize("method", NAMES)
def test_every_class(method: str) -> None:
    owner = public(method)
    name = method.split(".")[-2]
    transform = made(owner, name)
    given = inputs(owner, name)
    known = {key: value.clone() for key, value in getattr(transform, "state_dict", dict)().items()}
    expected = seeded(transform, given)
    plan = {f"{owner.__name__}.{name}": PLAN}
    for verify in (0, 1):
        with PipelineMigrator(plan, strict=True, verify=verify) as migrator:
            found = seeded(transform, given)
        assert [row.migrated for row in migrator.report().rows] == [4]
        assert_same(found, expected)
    assert_same(getattr(transform, "state_dict", dict)(), known)


@pytest.mark.parametrize("package", sorted(CLASSES))
def test_all_of_them_are_there(package: str) -> None:
    module_of(package)
    classes = CLASSES[package]
    for name in (*classes.promises, *classes.containers, *classes.conversions):
        module, _, found = name.rpartition(".")
        kind = getattr(importlib.import_module(module), found)
        assert f"{kind.__module__}.{kind.__qualname__}" == name
    for name in strategies_of(package):
        kind, _, method = name.rpartition(".")
        module, _, found = kind.rpartition(".")
        assert callable(getattr(getattr(importlib.import_module(module), found), method))


def by_plan(name: str, transform: Any, *given: Any) -> Any:
    """Return what a transform gives; it has to be migrated."""
    plan = {name: PLAN}
    with PipelineMigrator(plan, strict=True) as migrator:
        found = transform(*given)
    assert [row.migrated for row in migrator.report().rows] == [1]
    return found


def test_classes_of_tensors_are_kept() -> None:
    v2, kinds = module_of("torchvision.transforms.v2"), module_of("torchvision.tv_tensors")
    sample = {
        "image": kinds.Image(IMAGE),
        "boxes": kinds.BoundingBoxes([[2, 3, 9, 9.0]], format="XYXY", canvas_size=(40, 30)),
        "mask": kinds.Mask(IMAGE[:1]),
        "label": torch.tensor(3),
        "name": "a",
    }
    transform = v2.Compose([v2.Resize((20, 20)), v2.RandomHorizontalFlip(1.0)])
    expected = transform(sample)
    found = by_plan("torchvision.transforms.v2.Compose", transform, sample)
    assert list(found) == list(expected)
    for key in ("image", "boxes", "mask"):
        assert type(found[key]) is type(sample[key])
        assert_same(found[key].as_subclass(torch.Tensor), expected[key].as_subclass(torch.Tensor))
    assert found["boxes"].format == expected["boxes"].format
    assert found["boxes"].canvas_size == (20, 20)
    assert found["label"] is sample["label"]


def test_images_of_pillow() -> None:
    v1, image = module_of("torchvision.transforms"), module_of("PIL.Image")
    given = image.fromarray(IMAGE.permute(1, 2, 0).numpy())
    steps = [v1.Resize((20, 20)), v1.ToTensor(), v1.Normalize([0.5] * 3, [0.2] * 3)]
    transform = v1.Compose(steps)
    name = "torchvision.transforms.Compose"
    assert_same(by_plan(name, transform, given), transform(given))
    plan = {name.replace("Compose", "Resize"): PLAN}
    with PipelineMigrator(plan) as migrator:
        assert steps[0](given).size == (20, 20)
    [row] = migrator.report().rows
    assert "an image of Pillow is no tensor" in "".join(row.reasons)
