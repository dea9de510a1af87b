"""`cv2.pow`, `sqrt`, `exp`, `log` and `magnitude` on tensors, against OpenCV."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("torch")
cv2 = pytest.importorskip("cv2")
np = pytest.importorskip("numpy")

from devicecore import cv  # noqa: E402 - it imports torch
from devicecore.cv import catalog  # noqa: E402 - like it
from devicecore.cv.environment import environment  # noqa: E402 - like them
from tests.cv.differential import compare, image, photo  # noqa: E402 - it imports torch

INTEGERS = ["uint8", "int8", "uint16", "int16"]
FLOATS = ["float32", "float64"]
sizes = st.integers(1, 40)
channels = st.integers(0, 4)


@pytest.mark.parametrize("dtype", INTEGERS)
@given(sizes, sizes, channels, st.integers(0, 40), st.integers(0, 15))
def test_powers_of_integers(
    dtype: str, height: int, width: int, count: int, power: int, shift: int
) -> None:
    picture = image(height, width, count, dtype)
    # Without AVX2, products that do not fit uint16 depend on their place in the row.
    is_known = dtype != "uint16" or power != 2 or environment().has_fma
    expected = "exact" if is_known else "host"
    assert compare("pow", picture, power) == expected
    dull = picture >> min(shift, np.iinfo(dtype).bits - 3)
    assert compare("pow", dull, float(power)) == expected


@pytest.mark.usefixtures("ipp")
@pytest.mark.parametrize("dtype", FLOATS)
def test_powers_of_numbers(dtype: str) -> None:
    @given(sizes, sizes, channels, st.integers(-9, 20), st.floats(0.01, 3), st.floats(-3, 3))
    def check(height: int, width: int, count: int, whole: int, scale: float, power: float) -> None:
        picture = ((image(height, width, count, dtype) + 0.01) * scale).astype(dtype)
        assert compare("pow", picture, whole) == "exact"
        assert compare("pow", -picture, whole) == "exact"
        assert compare("pow", picture, power) in {"exact", "tolerance"}
        root = "exact" if dtype == "float32" else "tolerance"
        assert compare("pow", picture, 0.5) == compare("sqrt", picture) == root
        assert compare("pow", picture, -0.5) == "tolerance"

    check()


@pytest.mark.usefixtures("ipp")
@pytest.mark.parametrize("dtype", FLOATS)
def test_exponentials_logarithms_and_lengths(dtype: str) -> None:
    @given(sizes, sizes, channels, st.floats(0.01, 30))
    def check(height: int, width: int, count: int, scale: float) -> None:
        first, second = (image(height, width, count, dtype, seed) for seed in (1, 2))
        values = ((first - 0.5) * scale).astype(dtype)
        assert compare("exp", values) == "tolerance"
        assert compare("log", np.exp(values)) == "tolerance"
        assert compare("magnitude", values, (second * scale).astype(dtype)) == "tolerance"

    check()


def test_what_has_no_power() -> None:
    values = np.array([[-1.5, 0, 2]], np.float32)
    with cv.using("torch"), cv.accept("tolerance"):
        for power in (2.4, -1.5, 0.5):
            found, expected = cv.pow(values, power), cv2.pow(values, power)
            np.testing.assert_allclose(found, expected, rtol=1e-5)
        np.testing.assert_allclose(cv.log(values[:, 1:]), cv2.log(values[:, 1:]), rtol=1e-5)


def test_a_photo() -> None:
    assert compare("pow", photo(), 2) == "exact"
    assert compare("pow", (photo() / 255).astype(np.float32), 1 / 2.2) == "tolerance"
    assert compare("sqrt", photo().astype(np.float32)) == "exact"


def test_calls_for_opencv_to_judge() -> None:
    numbers = image(9, 20, 3, "float32")
    assert compare("pow", image(9, 20), -1) == "host"
    assert compare("pow", numbers, 1 << 30) == "host"
    operation = catalog.find("pow", "torch")
    assert operation is not None
    # Of the first one, OpenCV writes beyond its result.
    for picture, power in ((image(9, 20), 0.5), (numbers, float("nan"))):
        assert operation.plan((picture, power), {}) is None
    with pytest.raises(cv2.error):
        cv.exp(image(9, 20))
    with pytest.raises(cv2.error):
        cv.magnitude(numbers, numbers[1:])
