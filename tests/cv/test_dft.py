"""`cv2.dft` and `cv2.idft` on tensors, against OpenCV."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("torch")
cv2 = pytest.importorskip("cv2")
np = pytest.importorskip("numpy")

from tests.cv.differential import compare, image, photo  # noqa: E402 - it imports torch

sizes = st.integers(1, 60)
COMPLEX, REAL, ROWS = cv2.DFT_COMPLEX_OUTPUT, cv2.DFT_REAL_OUTPUT, cv2.DFT_ROWS


@pytest.mark.usefixtures("ipp")
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_noise(dtype: str) -> None:
    @given(sizes, sizes, st.sampled_from([0, ROWS]), st.sampled_from([0, cv2.DFT_SCALE]))
    def check(height: int, width: int, rows: int, scale: int) -> None:
        numbers, both = image(height, width, 0, dtype), image(height, width, 2, dtype)
        spectrum = cv2.dft(numbers, flags=COMPLEX | rows)
        flags = rows | scale
        for name in ("dft", "idft"):
            assert compare(name, both, flags=flags) == "tolerance"
            assert compare(name, both, flags=flags | COMPLEX) == "tolerance"
        assert compare("dft", both, flags=flags | cv2.DFT_INVERSE) == "tolerance"
        assert compare("dft", numbers, None, flags | COMPLEX) == "tolerance"
        assert compare("idft", spectrum, None, flags | REAL) == "tolerance"

    check()


@pytest.mark.usefixtures("ipp")
def test_a_photo() -> None:
    plane = photo()[..., 1].astype(np.float32)
    assert compare("dft", plane, flags=COMPLEX) == "tolerance"
    spectrum = cv2.dft(plane, flags=COMPLEX)
    assert compare("idft", spectrum, flags=REAL | cv2.DFT_SCALE) == "tolerance"


def test_calls_for_opencv_to_judge() -> None:
    numbers, both = image(9, 20, 0, "float32"), image(9, 20, 2, "float32")
    assert compare("dft", numbers) == "host"
    assert compare("idft", numbers) == "host"
    assert compare("dft", both, None, 0, 3) == "host"
    assert compare("dft", both, flags=REAL) == "host"
