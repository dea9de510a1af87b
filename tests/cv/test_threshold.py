"""`cv2.threshold` on tensors, against OpenCV."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("torch")
cv2 = pytest.importorskip("cv2")
np = pytest.importorskip("numpy")

from devicecore import cv  # noqa: E402 - it imports torch
from devicecore.cv import catalog  # noqa: E402 - like it
from tests.cv.differential import compare, image, photo  # noqa: E402 - it imports torch

KINDS = ["BINARY", "BINARY_INV", "TRUNC", "TOZERO", "TOZERO_INV"]
sizes = st.integers(1, 40)
levels = st.floats(-300, 70000, width=32) | st.integers(-3, 300)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", ["uint8", "uint16", "int16", "float32", "float64"])
@given(sizes, sizes, st.sampled_from([0, 1, 2, 3, 4, 5]), levels, levels)
def test_given_levels(
    kind: str, dtype: str, height: int, width: int, count: int, level: float, most: float
) -> None:
    picture = image(height, width, count, dtype)
    if dtype.startswith("float"):
        picture = picture * 70000 - 300
    promise = compare("threshold", picture, level, most, getattr(cv2, f"THRESH_{kind}"))
    assert promise == (
        "host" if dtype == "uint8" and max(abs(level), abs(most)) > 65280 else "exact"
    )


@pytest.mark.parametrize("kind", KINDS)
def test_a_photo(kind: str) -> None:
    flag = getattr(cv2, f"THRESH_{kind}")
    for level in range(-1, 257, 16):
        assert compare("threshold", photo(), level, 255, flag) == "exact"


@given(sizes, sizes, st.integers(0, 255), st.integers(1, 256), st.integers(0, 9))
def test_triangles(height: int, width: int, least: int, spread: int, seed: int) -> None:
    values = image(height, width, 0, seed=seed).astype(int) % min(spread, 256 - least)
    plane = (values * (values if seed % 2 else 1) // (255 if seed % 2 else 1) + least).clip(0, 255)
    for kind in KINDS:
        flag = getattr(cv2, f"THRESH_{kind}") | cv2.THRESH_TRIANGLE
        assert compare("threshold", plane.astype(np.uint8), 0, 255, flag) == "exact"


def test_a_triangle_of_photos() -> None:
    for channel in range(3):
        for picture in (photo()[..., channel], 255 - photo()[..., channel]):
            assert compare("threshold", picture, 0, 255, cv2.THRESH_TRIANGLE) == "exact"


@pytest.mark.long
@pytest.mark.parametrize("dtype", ["uint8", "uint16"])
@given(sizes, sizes, st.integers(0, 9))
def test_otsus_thresholds(dtype: str, height: int, width: int, seed: int) -> None:
    plane = image(height + 2, width + 2, 1, dtype, seed)
    assert compare("threshold", plane, 0, 255, cv2.THRESH_OTSU) == "close"
    with cv.using("torch"), cv.accept("close"):
        for kind in KINDS:
            flag = getattr(cv2, f"THRESH_{kind}") | cv2.THRESH_OTSU
            level, found = cv.threshold(plane, 0, 255, flag)
            assert type(level) is float
            wanted_level, wanted = cv2.threshold(plane, 0, 255, flag)
            assert level == wanted_level
            assert np.array_equal(found, wanted)


def test_otsus_thresholds_that_are_as_good() -> None:
    plane = np.array([[0, 100, 200]], np.uint8)
    with cv.using("torch"), cv.accept("close"):
        assert cv.threshold(plane, 0, 255, cv2.THRESH_OTSU)[0] == 0
        assert cv.threshold(np.full((2, 3), 7, np.uint8), 0, 255, cv2.THRESH_OTSU)[0] == 0


def test_every_image_of_a_batch_has_a_threshold_of_its_own() -> None:
    planes = [photo()[..., channel] // (channel + 1) for channel in range(3)]
    for finder in (cv2.THRESH_OTSU, cv2.THRESH_TRIANGLE):
        with cv.using("torch"), cv.accept("close"):
            several = cv.threshold(planes, 0, 255, finder)
        for plane, (level, found) in zip(planes, several, strict=True):
            wanted_level, wanted = cv2.threshold(plane, 0, 255, finder)
            assert level == wanted_level
            assert np.array_equal(found, wanted)


def test_calls_for_opencv_to_judge() -> None:
    plane = image(9, 20, 0)
    for kind in (cv2.THRESH_OTSU | cv2.THRESH_TRIANGLE, 128, 6):
        assert compare("threshold", plane, 100, 255, kind) == "host"
    for picture in (image(9, 20), image(9, 20, 0, "float32")):
        operation = catalog.find("threshold", "torch")
        assert operation is not None
        assert operation.plan((picture, 100, 255, cv2.THRESH_TRIANGLE), {}) is None
    assert compare("threshold", image(9, 20, 0, "int8"), 100, 255, cv2.THRESH_BINARY) == "host"
    assert compare("threshold", plane, float("inf"), 255, cv2.THRESH_BINARY) == "host"
    assert compare("threshold", plane, "a", 255, cv2.THRESH_BINARY) == "host"
