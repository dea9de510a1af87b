"""Pipelines of albumentations give the same with OpenCV's functions replaced by torch's kernels.

Its whole public suite is run by `benchmarks.albumentations_suite`, and the result is kept.
"""

from __future__ import annotations

import json
import os
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
cv2 = pytest.importorskip("cv2")
os.environ.setdefault("NO_ALBUMENTATIONS_UPDATE", "1")  # it asks the network for news otherwise
A = pytest.importorskip("albumentations")

from benchmarks import albumentations_suite  # noqa: E402 - it imports cv2
from benchmarks.intercepting import intercepted  # noqa: E402 - it imports torch
from tests.cv.differential import IS_OLD, photo  # noqa: E402 - it imports torch

PIPELINES: dict[str, list[Any]] = {
    "classification": [
        A.RandomResizedCrop((96, 96)),
        A.HorizontalFlip(),
        A.ColorJitter(p=1),
        A.GaussianBlur((3, 7)),
        A.Normalize(),
    ],
    "detection": [
        A.LongestMaxSize(128),
        A.PadIfNeeded(160, 160, border_mode=cv2.BORDER_CONSTANT, fill=114),
        A.HueSaturationValue(p=1),
        A.CLAHE(),
        A.MedianBlur((3, 5)),
        A.ToGray(p=0.1),
    ],
    "geometry": [
        A.SmallestMaxSize(140, interpolation=cv2.INTER_AREA),
        A.Affine(scale=(0.8, 1.2), rotate=(-30, 30), p=1),
        A.Perspective(p=1),
        A.ElasticTransform(),
        A.GridDistortion(),
        A.RandomCrop(96, 96),
        A.Transpose(),
    ],
    "weather": [
        A.Resize(120, 100),
        A.RandomFog(),
        A.RandomSunFlare(src_radius=40),
        A.Sharpen(),
        A.RandomBrightnessContrast(p=1),
        A.Posterize(4),
        A.Morphological(),
    ],
}


@pytest.mark.parametrize("name", PIPELINES)
def test_the_same_images(name: str) -> None:
    made = A.Compose(PIPELINES[name], seed=5)
    pictures = [photo()[:300, :260], photo("coffee")] * 3
    expected = [made(image=each)["image"] for each in pictures]
    made.set_random_seed(5)
    with intercepted() as tally:
        found = [made(image=each)["image"] for each in pictures]
    assert tally.wrong == []
    assert tally.differing["exact"] == 0
    for one, wanted in zip(found, expected, strict=True):
        assert one.dtype == wanted.dtype
        assert np.abs(one.astype(float) - wanted).max() <= (1 if one.dtype == np.uint8 else 1e-4)
    exact = sum(count for (_, promise), count in tally.promises.items() if promise == "exact")
    assert IS_OLD or exact >= 0.8 * sum(tally.promises.values())
    assert vars(cv2)["resize"] is cv2.resize


def test_the_kept_run_of_its_suite() -> None:
    kept = json.loads(albumentations_suite.KEPT.read_text(encoding="utf-8"))
    assert kept["changed outcomes"] == {}
    assert kept["undeclared differences"] == []
    assert kept["values that differ"]["exact"] == 0
    assert kept["exact, share"] >= 0.8
    assert kept["within tolerance, share"] >= 0.9
