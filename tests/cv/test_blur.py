"""Blurs of `cv2` on tensors, against OpenCV."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("torch")
cv2 = pytest.importorskip("cv2")
np = pytest.importorskip("numpy")

from tests.cv.differential import compare, image, photo  # noqa: E402 - it imports torch

BORDERS = [cv2.BORDER_CONSTANT, cv2.BORDER_REPLICATE, cv2.BORDER_REFLECT, cv2.BORDER_REFLECT_101]
sizes = st.integers(1, 40)
channels = st.sampled_from([0, 1, 2, 3, 4, 5])
odd = st.integers(0, 15).map(lambda half: 2 * half + 1)
sigmas = st.sampled_from([0, 0.3, 0.8, 1.3, 2.2]) | st.floats(0.1, 12)


@pytest.mark.parametrize("border", BORDERS)
@pytest.mark.parametrize("dtype", ["uint8", "uint16", "float32"])
@given(sizes, sizes, channels, odd, odd, sigmas, sigmas)
def test_gaussian(
    border: int,
    dtype: str,
    height: int,
    width: int,
    count: int,
    wide: int,
    high: int,
    sigma: float,
    other: float,
) -> None:
    picture = image(height, width, count, dtype)
    named: dict[str, Any] = {"sigmaY": other, "borderType": border}
    expected = "exact" if dtype != "float32" or cv2.__version__ >= "5" else "host"
    assert compare("GaussianBlur", picture, (wide, high), sigma, **named) == expected
    if sigma:
        assert compare("GaussianBlur", picture, (0, 0), sigma, **named) == expected


@pytest.mark.long
def test_gaussian_of_a_photo() -> None:
    for size, sigma in (((3, 3), 0), ((5, 5), 0), ((7, 7), 1.7), ((31, 31), 0), ((0, 0), 4.4)):
        assert compare("GaussianBlur", photo(), size, sigma) == "exact"
        assert compare("GaussianBlur", photo()[3:430, 7:], size, sigma) == "exact"
        assert compare("GaussianBlur", photo().astype("uint16") * 257, size, sigma) == "exact"
        if cv2.__version__ >= "5":
            for picture in (photo() / np.float32(255), photo()[3:430, 7:].astype("float32")):
                assert compare("GaussianBlur", picture, size, sigma) == "exact"


@pytest.mark.parametrize("border", BORDERS)
@pytest.mark.parametrize("dtype", ["uint8", "uint16", "int16", "float32"])
@given(sizes, sizes, channels, st.integers(1, 40), st.integers(1, 30), st.booleans(), st.booleans())
def test_boxes(
    border: int,
    dtype: str,
    height: int,
    width: int,
    count: int,
    wide: int,
    high: int,
    normalize: bool,
    in_floats: bool,
) -> None:
    picture = image(height, width, count, dtype)
    expected = "tolerance" if dtype == "float32" else "exact"
    # Means of two bytes are OpenCV's own: of 255 and 255 they depend on the column.
    is_of_two = dtype == "uint8" and wide * high == 2
    found = compare("blur", picture, (wide, high), borderType=border)
    assert found == ("host" if is_of_two else expected)
    anchor = (wide - 1, 0)
    depth = cv2.CV_32F if in_floats else -1
    named: dict[str, Any] = {"anchor": anchor, "normalize": normalize, "borderType": border}
    found = compare("boxFilter", picture, depth, (wide, high), **named)
    assert found == ("host" if is_of_two and normalize and not in_floats else expected)


def test_boxes_of_a_photo() -> None:
    for size in ((2, 2), (3, 3), (8, 8), (15, 15), (16, 17), (31, 31), (100, 90)):
        assert compare("blur", photo(), size) == "exact"
        assert compare("blur", photo().astype("uint16") * 257, size) == "exact"


@pytest.mark.parametrize("dtype", ["uint8", "uint16", "int16", "float32"])
@given(sizes, sizes, channels, st.sampled_from([1, 3, 5, 7, 9, 13]))
def test_medians(dtype: str, height: int, width: int, count: int, size: int) -> None:
    promise = compare("medianBlur", image(height, width, count, dtype), size)
    is_general = size <= 5 or (dtype == "uint8" and count not in {2, 5})
    assert promise == ("exact" if is_general else "host")


def test_medians_of_a_photo() -> None:
    for size in (3, 5, 7, 15):
        assert compare("medianBlur", photo()[100:300, 7:311], size) == "exact"


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("GaussianBlur", ((4, 4), 0)),
        ("GaussianBlur", ((0, 0), 0)),
        ("GaussianBlur", ((3.0, 3), 0)),
        ("GaussianBlur", ((3, 3), 0, None, 0, cv2.BORDER_WRAP)),
        ("GaussianBlur", ((3, 3), 0, None, 0, cv2.BORDER_DEFAULT, cv2.ALGO_HINT_APPROX)),
        ("blur", ((0, 3),)),
        ("blur", ((1, 2),)),
        ("boxFilter", (-1, (2, 1))),
        ("blur", ((3, 3), None, (3, 0))),
        ("blur", ((3, 3), None, (-1, -1), cv2.BORDER_WRAP)),
        ("boxFilter", (cv2.CV_16S, (3, 3))),
        ("medianBlur", (4,)),
        ("medianBlur", (3.0,)),
    ],
)
def test_calls_for_opencv_to_judge(name: str, arguments: tuple[Any, ...]) -> None:
    assert compare(name, image(9, 20), *arguments) == "host"
    assert compare(name, image(0, 20), *arguments) == "host"
