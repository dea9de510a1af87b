"""`cv2.cvtColor` from Bayer patterns on tensors, against OpenCV."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("torch")
cv2 = pytest.importorskip("cv2")

from tests.cv.differential import compare, image, photo  # noqa: E402 - it imports torch

PATTERNS = ["BG", "GB", "RG", "GR"]
TARGETS = ["BGR", "RGB", "BGRA", "RGBA", "GRAY"]
sizes = st.integers(3, 70)


@pytest.mark.parametrize("dtype", ["uint8", "uint16"])
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("pattern", PATTERNS)
@given(sizes, sizes)
def test_noise(pattern: str, target: str, dtype: str, height: int, width: int) -> None:
    code = getattr(cv2, f"COLOR_Bayer{pattern}2{target}")
    assert compare("cvtColor", image(height, width, 0, dtype), code) == "exact"


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("pattern", PATTERNS)
def test_a_photo(pattern: str, target: str) -> None:
    code = getattr(cv2, f"COLOR_Bayer{pattern}2{target}")
    for plane in (photo()[..., 1], photo()[3:430, 7:, 2]):
        assert compare("cvtColor", plane, code) == "exact"


def test_calls_for_opencv_to_judge() -> None:
    assert compare("cvtColor", image(2, 20, 0), cv2.COLOR_BayerBG2BGR) == "host"
    assert compare("cvtColor", image(9, 20, 0), cv2.COLOR_BayerBG2BGR, dstCn=4) == "host"
    for code in (cv2.COLOR_BayerBG2BGR_VNG, cv2.COLOR_BayerBG2BGR_EA):
        assert compare("cvtColor", image(9, 20, 0), code) == "host"
