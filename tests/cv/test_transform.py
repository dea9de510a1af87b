"""`cv2.transform` on tensors, against OpenCV."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("torch")
np = pytest.importorskip("numpy")
pytest.importorskip("cv2")

from tests.cv.differential import compare, image, photo  # noqa: E402 - it imports torch

SEPIA = np.array([[0.272, 0.534, 0.131], [0.349, 0.686, 0.168], [0.393, 0.769, 0.189]])
ALMOST = np.nextafter(np.float32(101.5 / 1024), np.float32(0))
SPECIAL = {(2, 2), (3, 3), (4, 4), (3, 1)}
sizes = st.tuples(st.integers(1, 30), st.integers(1, 60))


def matrix(
    before: int, after: int, more: int, parts: int, seed: int, dtype: str = "float64"
) -> Any:
    """Return factors whose sums are often halves."""
    chance = np.random.default_rng([before, after, more, parts, seed])
    return (chance.integers(-30, 31, (after, before + more)) / parts).astype(dtype)


@given(sizes, st.integers(0, 1), st.sampled_from([2, 6, 10, 20, 60]), st.integers(0, 99))
def test_three_bytes_to_three_are_exact(
    size: tuple[int, int], more: int, parts: int, seed: int
) -> None:
    factors = matrix(3, 3, more, parts, seed)
    if seed % 2:
        factors = np.random.default_rng(seed).normal(0, 5, factors.shape).astype(np.float32)
    assert compare("transform", image(*size, 3, seed=seed % 9), factors) == "exact"


@pytest.mark.parametrize("before", [1, 2, 3, 4])
@pytest.mark.parametrize("after", [1, 2, 3, 4])
@pytest.mark.parametrize("dtype", ["uint8", "float32"])
def test_other_channels(dtype: str, before: int, after: int) -> None:
    is_known = (before, after) not in SPECIAL
    expected = {"uint8": "lsb1", "float32": "tolerance"}[dtype]
    if is_known and (dtype == "uint8" or before < 4):
        expected = "exact"

    @given(sizes, st.integers(0, 1), st.sampled_from([2, 6, 10, 20, 60]), st.integers(0, 99))
    def check(size: tuple[int, int], more: int, parts: int, seed: int) -> None:
        picture = image(*size, before, dtype, seed % 9)
        factors = matrix(before, after, more, parts, seed)
        promise = compare("transform", picture, factors)
        if before == after == 1:
            assert promise == "host"
        elif dtype == "float32" or (before, after) != (3, 3):
            assert promise == expected

    check()


def test_photos() -> None:
    assert compare("transform", photo(), SEPIA) == "exact"
    assert compare("transform", photo(), SEPIA.astype(np.float32)) == "exact"
    assert compare("transform", photo(), np.hstack([SEPIA, [[30.4], [-20.5], [0.25]]])) == "exact"
    assert compare("transform", photo(), SEPIA[:2]) == "exact"
    assert compare("transform", photo(), SEPIA * 100) == "lsb1"
    assert compare("transform", photo(), np.diag([0.3, 0.5, 0.7])) == "lsb1"


@pytest.mark.parametrize(
    ("picture", "factors"),
    [
        (image(9, 20), SEPIA.tolist()),
        (image(9, 20), np.eye(3, dtype=np.int32)),
        (image(9, 20), SEPIA[:, :2]),
        (image(9, 20), SEPIA * np.nan),
        (image(9, 20), SEPIA * 1e9),
        (image(9, 20), np.ones((5, 3))),
        (image(9, 20, 5), np.ones((3, 5))),
        (image(9, 20, 3, "uint16"), SEPIA),
        # Adding a half before rounding, and after it, gives two numbers.
        (image(9, 20), np.hstack([SEPIA, np.full((3, 1), ALMOST)])),
    ],
)
def test_calls_for_opencv_to_judge(picture: Any, factors: Any) -> None:
    assert compare("transform", picture, factors) == "host"
