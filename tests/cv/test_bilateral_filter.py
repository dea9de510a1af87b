"""`cv2.bilateralFilter` on tensors, against OpenCV."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("torch")
cv2 = pytest.importorskip("cv2")
np = pytest.importorskip("numpy")

from tests.cv.differential import compare, image, photo  # noqa: E402 - it imports torch

BORDERS = [
    cv2.BORDER_CONSTANT,
    cv2.BORDER_REPLICATE,
    cv2.BORDER_REFLECT,
    cv2.BORDER_REFLECT_101,
]
sigmas = st.floats(0.5, 200)


@pytest.mark.usefixtures("ipp")
@pytest.mark.parametrize("channels", [0, 1, 3])
def test_noise(channels: int) -> None:
    @given(
        st.integers(1, 40),
        st.integers(1, 40),
        st.integers(-1, 9),
        sigmas,
        st.floats(0.5, 9),
        st.sampled_from(BORDERS),
        st.integers(0, 6),
    )
    def check(
        height: int, width: int, size: int, colour: float, space: float, border: int, shift: int
    ) -> None:
        picture = image(height, width, channels) >> shift
        found = compare("bilateralFilter", picture, size, colour, space, borderType=border)
        assert found == "lsb1"

    check()


@pytest.mark.usefixtures("ipp")
@pytest.mark.parametrize(("size", "colour", "space"), [(9, 75, 75), (5, 50, 50), (7, 20, 3)])
def test_photos(size: int, colour: float, space: float) -> None:
    assert compare("bilateralFilter", photo(), size, colour, space) == "lsb1"
    assert compare("bilateralFilter", photo()[..., 1].copy(), size, colour, space) == "lsb1"


def test_sigmas_that_are_none() -> None:
    assert compare("bilateralFilter", image(9, 20), 5, 0, 3) == "exact"
    assert compare("bilateralFilter", image(9, 20), 5, 3, -1) == "exact"


def test_calls_for_opencv_to_judge() -> None:
    assert compare("bilateralFilter", image(9, 20), 99, 20, 3) == "host"
    assert compare("bilateralFilter", image(9, 20, 3, "float32"), 5, 20, 3) == "host"
    assert compare("bilateralFilter", image(9, 20, 3), 5, 20, 3, borderType=99) == "host"
