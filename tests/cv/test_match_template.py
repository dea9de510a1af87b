"""`cv2.matchTemplate` on tensors, against OpenCV."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("torch")
cv2 = pytest.importorskip("cv2")
np = pytest.importorskip("numpy")

from devicecore import cv  # noqa: E402 - it imports torch
from tests.cv.differential import compare, image, photo  # noqa: E402 - it imports torch

KINDS = ["CCORR", "CCORR_NORMED", "SQDIFF", "SQDIFF_NORMED", "CCOEFF", "CCOEFF_NORMED"]
sizes = st.integers(1, 40)


@pytest.mark.usefixtures("ipp")
@pytest.mark.parametrize("dtype", ["uint8", "float32"])
def test_noise(dtype: str) -> None:
    @given(sizes, sizes, sizes, sizes, st.integers(0, 4), st.integers(0, 9))
    def check(height: int, width: int, high: int, wide: int, count: int, seed: int) -> None:
        picture = image(height + high - 1, width + wide - 1, count, dtype, seed)
        part = image(high, wide, count, dtype, seed + 1)
        assert compare("matchTemplate", picture, part, cv2.TM_CCORR) == "tolerance"

    check()


@pytest.mark.usefixtures("ipp")
@pytest.mark.parametrize("kind", KINDS)
def test_photos(kind: str) -> None:
    method = getattr(cv2, f"TM_{kind}")
    for picture in (photo(), photo()[..., 1].copy(), photo().astype("float32")):
        part = picture[200:260, 150:230].copy()
        promise = "tolerance" if kind == "CCORR" else "close"
        assert compare("matchTemplate", picture, part, method) == promise
        with cv.using("torch"), cv.accept("close"):
            found = cv.matchTemplate(picture, part, method)
        expected = cv2.matchTemplate(picture, part, method)
        assert np.abs(found - expected).max() <= 1e-3 * max(1, np.abs(expected).max())
        best = cv2.minMaxLoc(found)[2 if "SQDIFF" in kind else 3]
        assert best == (150, 200) or kind == "CCORR"


def test_what_is_all_of_one_colour() -> None:
    dark, bright = np.zeros((9, 20), np.uint8), np.full((3, 4), 200, np.uint8)
    for kind in KINDS:
        method = getattr(cv2, f"TM_{kind}")
        for pair in ((dark, bright), (dark + 7, bright), (dark, dark[:3, :4].copy())):
            with cv.using("torch"), cv.accept("close"):
                found = cv.matchTemplate(*pair, method)
            np.testing.assert_allclose(found, cv2.matchTemplate(*pair, method), rtol=1e-4, atol=1)


def test_calls_for_opencv_to_judge() -> None:
    picture, part = image(20, 30), image(5, 6)
    assert compare("matchTemplate", picture, part, cv2.TM_CCORR, mask=part) == "host"
    assert compare("matchTemplate", part, picture, cv2.TM_CCORR) == "host"
    for wrong in ((image(20, 30, 3, "uint16"), part), (picture, image(5, 6, 0))):
        with pytest.raises(cv2.error):
            cv.matchTemplate(*wrong, cv2.TM_CCORR)
    with pytest.raises(cv2.error):
        cv.matchTemplate(picture, part, 99)
