"""`cv2.adaptiveThreshold` on tensors, and the float blur it rests on, against OpenCV."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("torch")
cv2 = pytest.importorskip("cv2")
np = pytest.importorskip("numpy")

from tests.cv.differential import compare, image, photo  # noqa: E402 - it imports torch

MEAN, GAUSSIAN = cv2.ADAPTIVE_THRESH_MEAN_C, cv2.ADAPTIVE_THRESH_GAUSSIAN_C
KINDS = [cv2.THRESH_BINARY, cv2.THRESH_BINARY_INV]
sizes = st.tuples(st.integers(1, 60), st.integers(1, 90))
windows = st.sampled_from([3, 5, 7, 9, 11, 13, 15, 17, 23, 31, 51])


@pytest.mark.parametrize("method", [MEAN, GAUSSIAN])
@given(
    sizes,
    st.sampled_from(KINDS),
    windows,
    st.sampled_from([0, 2, -3, 1.5, -0.5, 300, -300]),
    st.sampled_from([255, 1, 0, 99.5, 100.5, 1000]),
    st.integers(1, 255),
    st.integers(0, 9),
)
def test_thresholds_are_exact(
    method: int,
    size: tuple[int, int],
    kind: int,
    block: int,
    less: float,
    most: float,
    spread: int,
    seed: int,
) -> None:
    plane = image(*size, 0, seed=seed) % spread
    assert compare("adaptiveThreshold", plane, most, method, kind, block, less) == "exact"


@pytest.mark.parametrize("method", [MEAN, GAUSSIAN])
def test_photos(method: int) -> None:
    for place, block in enumerate((3, 11, 31)):
        plane = photo()[..., place]
        call = (plane, 255, method, cv2.THRESH_BINARY, block, place - 1)
        assert compare("adaptiveThreshold", *call) == "exact"


@pytest.mark.parametrize(
    "call",
    [
        (image(9, 20), 255, MEAN, KINDS[0], 3, 2),
        (image(9, 20, 0, "uint16"), 255, MEAN, KINDS[0], 3, 2),
        (image(9, 20, 0), 255, MEAN, cv2.THRESH_TRUNC, 3, 2),
        (image(9, 20, 0), 255, 2, KINDS[0], 3, 2),
        (image(9, 20, 0), 255, MEAN, KINDS[0], 4, 2),
        (image(9, 20, 0), 255, MEAN, KINDS[0], 1, 2),
        (image(9, 20, 0), -1, MEAN, KINDS[0], 3, 2),
        (image(9, 20, 0), 255, MEAN, KINDS[0], 3, float("nan")),
    ],
)
def test_calls_for_opencv_to_judge(call: tuple[Any, ...]) -> None:
    assert compare("adaptiveThreshold", *call) == "host"
