"""`cv2.threshold` on tensors, against OpenCV."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("torch")
cv2 = pytest.importorskip("cv2")

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


def test_calls_for_opencv_to_judge() -> None:
    plane = image(9, 20, 0)
    for kind in (cv2.THRESH_OTSU, cv2.THRESH_TRIANGLE, 128, 6):
        assert compare("threshold", plane, 100, 255, kind) == "host"
    assert compare("threshold", image(9, 20, 0, "int8"), 100, 255, cv2.THRESH_BINARY) == "host"
    assert compare("threshold", plane, float("inf"), 255, cv2.THRESH_BINARY) == "host"
    assert compare("threshold", plane, "a", 255, cv2.THRESH_BINARY) == "host"
