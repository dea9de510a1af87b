"""`cv2.normalize` and `perspectiveTransform` on tensors, against OpenCV."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

torch = pytest.importorskip("torch")
cv2 = pytest.importorskip("cv2")
np = pytest.importorskip("numpy")

from devicecore import cv  # noqa: E402 - it imports torch
from tests.cv.differential import compare, image, photo  # noqa: E402 - it imports torch

DEPTHS = [-1, cv2.CV_8U, cv2.CV_8S, cv2.CV_16U, cv2.CV_16S, cv2.CV_32F]
sizes = st.tuples(st.integers(1, 70), st.integers(16, 90))
limits = st.sampled_from([0, 1, 255, -1, 0.5, 65535, 1e-17]) | st.floats(-400, 400)


@pytest.mark.parametrize("dtype", ["uint8", "int8", "uint16", "int16"])
@given(
    sizes,
    st.integers(0, 5),
    st.integers(0, 16),
    limits,
    limits,
    st.sampled_from(DEPTHS),
    st.integers(0, 9),
)
def test_ranges_of_integers_are_exact(
    dtype: str,
    size: tuple[int, int],
    channels: int,
    shift: int,
    alpha: float,
    beta: float,
    depth: int,
    seed: int,
) -> None:
    picture = image(*size, channels, dtype, seed) >> shift
    kind = cv2.NORM_MINMAX
    assert compare("normalize", picture, None, alpha, beta, kind, depth) == "exact"


@given(sizes, st.integers(0, 5), limits, limits, st.sampled_from(DEPTHS), st.integers(0, 9))
def test_ranges_of_numbers(
    size: tuple[int, int], channels: int, alpha: float, beta: float, depth: int, seed: int
) -> None:
    picture = (image(*size, channels, "float32", seed) - np.float32(0.3)) * np.float32(77)
    call = (picture, None, alpha, beta, cv2.NORM_MINMAX, depth)
    assert compare("normalize", *call) == "exact"


def test_photos() -> None:
    for depth in DEPTHS:
        for alpha, beta in ((0, 255), (0, 1), (-1, 1), (7, 7)):
            call = (None, alpha, beta, cv2.NORM_MINMAX, depth)
            assert compare("normalize", photo(), *call) == "exact"
            assert compare("normalize", np.full((9, 20, 3), 7, np.uint8), *call) == "exact"


def test_each_image_of_a_batch_has_its_own_range() -> None:
    pictures = [photo()[:40, :50] // each for each in (1, 2, 5)]
    with cv.using("torch"):
        found = cv.normalize(np.stack(pictures), None, 0, 255, cv2.NORM_MINMAX)
    for ours, picture in zip(found, pictures, strict=True):
        assert np.array_equal(ours, cv2.normalize(picture, None, 0, 255, cv2.NORM_MINMAX))


@pytest.mark.parametrize(
    "call",
    [
        (image(9, 20), None),
        (image(9, 20), None, 0, 255, cv2.NORM_L1),
        (image(9, 20), None, 0, 255, cv2.NORM_MINMAX, cv2.CV_64F),
        (image(9, 20), None, 0, 255, cv2.NORM_MINMAX, -1, image(9, 20, 0)),
        (image(9, 5), None, 0, 255, cv2.NORM_MINMAX),
        (image(9, 20), None, 0, float("inf"), cv2.NORM_MINMAX),
        (image(9, 20, 3, "float64"), None, 0, 255, cv2.NORM_MINMAX),
    ],
)
def test_calls_for_opencv_to_judge(call: tuple[Any, ...]) -> None:
    assert compare("normalize", *call) == "host"


@given(
    st.sampled_from([(2, 2), (3, 3), (3, 2)]),
    st.tuples(st.integers(1, 40), st.integers(1, 4)),
    st.sampled_from(["float32", "float64"]),
    st.floats(0.001, 1e6),
    st.integers(0, 9),
)
def test_points_are_exact(
    coordinates: tuple[int, int], shape: tuple[int, int], dtype: str, scale: float, seed: int
) -> None:
    before, after = coordinates
    chance = np.random.default_rng([before, after, *shape, seed])
    points = (chance.normal(size=(*shape, before)) * scale).astype(np.float32)
    points[chance.random(shape) < 0.1] = chance.choice([0, np.inf, np.nan, 1])
    matrix = chance.normal(size=(after + 1, before + 1)).astype(dtype)
    if seed % 3 == 0:
        matrix[-1] = 0
        matrix[-1, -1] = chance.choice([1, 1e-7, 2e-7, 0])
    assert compare("perspectiveTransform", points, matrix) == "exact"


def test_points_for_opencv_to_judge() -> None:
    turn = np.eye(3)
    points = image(9, 1, 2, "float32")
    assert compare("perspectiveTransform", points, turn) == "exact"
    assert compare("perspectiveTransform", points.astype(np.float64), turn) == "host"
    assert compare("perspectiveTransform", points, turn.tolist()) == "host"
    assert compare("perspectiveTransform", points, np.eye(4, 3)) == "host"
    assert compare("perspectiveTransform", points, np.eye(4)) == "host"
    assert compare("perspectiveTransform", points, turn * np.nan) == "host"
