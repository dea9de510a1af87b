"""Pipelines of albumentations give the same with OpenCV's functions migrated to torch's kernels.

Its whole public suite is run by `benchmarks.albumentations_suite`, and the result is kept.
"""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from attrs import asdict

torch = pytest.importorskip("torch")
cv2 = pytest.importorskip("cv2")
os.environ.setdefault("NO_ALBUMENTATIONS_UPDATE", "1")  # it asks the network for news otherwise
A = pytest.importorskip("albumentations")

from benchmarks import albumentations_suite  # noqa: E402 - it imports cv2
from benchmarks.albumentations_suite import UNDECLARED, Found  # noqa: E402
from benchmarks.intercepting import plan_for  # noqa: E402
from devicecore.ledger import default_ledger  # noqa: E402
from devicecore.migrate import PipelineMigrator  # noqa: E402
from tests.cv.differential import IS_OLD, photo  # noqa: E402 - it imports torch
from tests.migrate.sites import PATH, site  # noqa: E402

if TYPE_CHECKING:
    from devicecore.kernels import Exactness
    from devicecore.migrate.calls.report import CallStats

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


@pytest.mark.parametrize("accept", ["exact", "tolerance"])
@pytest.mark.parametrize("name", PIPELINES)
def test_the_same_images(name: str, accept: Exactness) -> None:
    made = A.Compose(PIPELINES[name], seed=5)
    pictures = [photo()[:300, :260], photo("coffee")] * 3
    expected = [made(image=each)["image"] for each in pictures]
    before = list(vars(cv2).items())
    plan = plan_for(accept, "plain", ())
    rows: list[CallStats] = []
    for verify in (0, 1):  # with our results, and with each of them compared
        made.set_random_seed(5)
        with PipelineMigrator(plan, verify=verify) as migrator:
            found = [made(image=each)["image"] for each in pictures]
        for one, wanted in zip(found, expected, strict=True):
            assert one.dtype == wanted.dtype
            off = np.abs(one.astype(float) - wanted).max()
            allowed = 1 if one.dtype == np.uint8 else 1e-4
            assert off <= (0 if accept == "exact" or verify else allowed)
        rows += migrator.report().rows
    assert [why for row in rows for why in row.reasons if why.startswith(UNDECLARED)] == []
    calls = sum(row.calls for row in rows)
    assert IS_OLD or sum(row.migrated for row in rows) >= 0.8 * calls > 0
    assert list(vars(cv2).items()) == before


def test_a_difference_is_noticed_where_its_suite_is_run() -> None:
    sites = [site(lambda: 1, verify=1), site(lambda: 2, verify=1)]
    for each in sites:
        assert each.call(lambda: 2, (), {}) == 2
    default_ledger().clear()
    rows = [each.tally.row() for each in sites]
    found = [Found({}, 0, [{"rows": [asdict(row)], "not put back": []}]) for row in rows]
    assert [each.undeclared() for each in found] == [[PATH], []]


def test_the_kept_run_of_its_suite() -> None:
    kept = json.loads(albumentations_suite.KEPT.read_text(encoding="utf-8"))
    assert kept["changed outcomes"] == {}
    assert kept["undeclared differences"] == {}
    assert kept["not put back"] == []
    assert kept["outcomes"].keys() == albumentations_suite.WAYS.keys()
    assert not any("error" in each for each in kept["outcomes"].values())
    assert kept["exact, share"] >= 0.8
    assert kept["within tolerance, share"] >= 0.9
