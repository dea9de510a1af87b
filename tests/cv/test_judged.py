"""Calls that OpenCV judges itself, and arguments that differ from image to image."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
cv2 = pytest.importorskip("cv2")

from devicecore import cv  # noqa: E402 - like the others
from devicecore.cv import catalog, plan  # noqa: E402 - they import torch
from devicecore.cv.environment import environment  # noqa: E402 - it imports cv2
from devicecore.cv.plan import Plan, in_parts  # noqa: E402 - like the others
from tests.cv.differential import IS_OLD, image  # noqa: E402 - it imports torch

PICTURE = image(20, 30)
TURNS = [cv2.getRotationMatrix2D((9, 9), angle, 1) for angle in (10, 70)]
BOTH = [PICTURE, image(20, 30, seed=1)]


@pytest.mark.parametrize(
    ("name", "others"),
    [
        ("filter2D", (-1, [np.eye(3, dtype=np.float32), np.ones((3, 3), np.float32) / 8])),
        ("LUT", ([np.arange(256, dtype=np.uint8), np.arange(256, dtype=np.uint8)[::-1].copy()],)),
        pytest.param(
            "warpAffine", (TURNS, (30, 20)), marks=pytest.mark.skipif(IS_OLD, reason="host there")
        ),
    ],
)
def test_an_argument_for_each_image(name: str, others: tuple[Any, ...]) -> None:
    with cv.using("torch"):
        found = getattr(cv, name)(BOTH, *others)
    for index, (one, picture) in enumerate(zip(found, BOTH, strict=True)):
        own = [each[index] if isinstance(each, list) else each for each in others]
        assert np.array_equal(one, getattr(cv2, name)(picture, *own))


@pytest.mark.parametrize("label", ["native", "torch"])
def test_places_for_a_batch(label: Any) -> None:
    places = [np.zeros_like(each) for each in BOTH]
    expected = [cv2.GaussianBlur(each, (3, 3), 0) for each in BOTH]
    with cv.using(label):
        found = cv.GaussianBlur(BOTH, (3, 3), 0, dst=places)
    for one, place, wanted in zip(found, places, expected, strict=True):
        assert one is place
        assert np.array_equal(place, wanted)


def test_one_place_for_a_batch_in_one_array() -> None:
    place = np.zeros((2, 20, 30, 3), np.uint8)
    with cv.using("torch"):
        assert cv.GaussianBlur(np.stack(BOTH), (3, 3), 0, dst=place) is place
    assert np.array_equal(place[1], cv2.GaussianBlur(BOTH[1], (3, 3), 0))


@pytest.mark.parametrize(
    ("name", "args", "kwargs"),
    [
        ("GaussianBlur", ((3, 3), "1"), {}),
        ("GaussianBlur", ((3, 3), True), {}),
        ("GaussianBlur", ((True, 3), 1), {}),
        ("GaussianBlur", ((3, 3), 1), {"sigmaY": float("nan")}),
        ("blur", ((3, 3),), {"borderType": 1.0}),
        ("boxFilter", (-1, (3, 3)), {"normalize": "1"}),
        ("Sobel", (-1, 1, 0), {"ksize": None}),
        ("flip", (1, "x"), {}),
        ("convertScaleAbs", (1.0,), {}),
        ("erode", (None,), {"iterations": 100_000}),
        ("copyMakeBorder", (2**31 - 1, 0, 0, 0, 0), {}),
    ],
)
def test_calls_for_opencv_to_judge(name: str, args: Any, kwargs: Any) -> None:
    operation = catalog.find(name, "torch")
    assert operation is not None
    assert operation.plan((PICTURE[:9, :9], *args), kwargs) is None


def test_places_that_opencv_does_not_write_to() -> None:
    operation = catalog.find("flip", "torch")
    assert operation is not None
    frozen = np.zeros_like(PICTURE)
    frozen.flags.writeable = False
    wide = np.zeros((20, 60, 3), np.uint8)
    for place in (frozen, np.zeros_like(PICTURE)[::-1], wide[:, ::2], wide[..., ::-1]):
        assert operation.plan((PICTURE, 1, place), {}) is None
    for place in (wide[:, :30], wide[:, 30:], np.zeros((20, 30), np.uint8)):
        assert operation.plan((PICTURE, 1, place), {}) is not None


@pytest.mark.parametrize("label", ["native", "torch"])
def test_places_of_another_kind(label: Any) -> None:
    with cv.using(label), pytest.raises(TypeError, match="place for the result"):
        cv.flip(torch.from_numpy(PICTURE), 1, np.zeros_like(PICTURE))
    with cv.using("torch"), pytest.raises(TypeError, match="place for the result"):
        cv.flip(PICTURE, 1, torch.zeros(20, 30, 3, dtype=torch.uint8))


def test_what_ipp_does_not_compute_exactly_is_left_to_opencv() -> None:
    assert not environment().is_inexact
    cv2.ipp.setUseIPP_NotExact(True)
    try:
        is_inexact = environment().is_inexact
        found = cv.resize(PICTURE, (20, 13))
        assert np.array_equal(found, cv2.resize(PICTURE, (20, 13)))
        operation = catalog.find("resize", "torch")
        assert operation is not None
        assert (operation.plan((PICTURE, (20, 13)), {}) is None) == is_inexact
    finally:
        cv2.ipp.setUseIPP_NotExact(False)


def test_results_are_no_part_of_a_graph() -> None:
    numbers = torch.rand(9, 20, 3, requires_grad=True)
    with cv.using("torch"):
        assert not cv.add(numbers, numbers).requires_grad
        place = torch.zeros(9, 20, 3, requires_grad=True)
        assert cv.flip(numbers, 1, place) is place
    assert torch.equal(place, numbers.detach().flip(1))


def test_long_batches_are_computed_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    lengths: list[int] = []

    def run(images: Any, others: Any) -> Any:
        lengths.append(len(images))
        return images + others, [images * 1]

    monkeypatch.setattr(plan, "MOST_AT_ONCE", 3)
    images = torch.arange(8).view(8, 1, 1, 1)
    both, [same] = in_parts(Plan(run)).run(images, torch.ones(1, 1, 1, 1, dtype=torch.int64))
    assert lengths == [3, 3, 2]
    assert torch.equal(both, images + 1)
    assert torch.equal(same, images)


def test_objects_for_contrast_can_be_asked_for_anything() -> None:
    made = cv.createCLAHE(2.0)
    assert made.getClipLimit() == 2
    with pytest.raises(AttributeError):
        copy.copy(made)._missing  # noqa: B018 - asking is what is tested
