"""Morphology and pyramids of `cv2` on tensors, against OpenCV."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("torch")
cv2 = pytest.importorskip("cv2")

from devicecore.cv import catalog  # noqa: E402 - it imports torch
from tests.cv.differential import compare, image, photo  # noqa: E402 - it imports torch

BORDERS = [cv2.BORDER_CONSTANT, cv2.BORDER_REPLICATE, cv2.BORDER_REFLECT, cv2.BORDER_REFLECT_101]
KINDS = ["ERODE", "DILATE", "OPEN", "CLOSE", "GRADIENT", "TOPHAT", "BLACKHAT"]
sizes = st.integers(1, 40)
channels = st.sampled_from([0, 1, 2, 3, 4, 5])
iterations = st.integers(0, 4)
whole_kernels = st.builds(np.ones, st.tuples(st.integers(1, 9), st.integers(1, 9)), st.just("u1"))
random_kernels = st.tuples(st.integers(1, 6), st.integers(1, 6), st.integers(0, 1000)).map(
    lambda key: image(key[0], key[1], 0, seed=key[2]) & 1
)
values = st.integers(-300, 70000) | st.floats(-300, 70000, width=32)
kernels = (whole_kernels | random_kernels).filter(lambda kernel: bool(kernel.any())) | st.none()


@pytest.mark.parametrize("border", BORDERS)
@pytest.mark.parametrize("dtype", ["uint8", "uint16", "int16", "float32", "float64"])
@given(sizes, sizes, channels, kernels, iterations, st.data())
def test_extremes(
    border: int, dtype: str, height: int, width: int, count: int, kernel: Any, times: int, data: Any
) -> None:
    picture = image(height, width, count, dtype)
    anchor = (-1, -1)
    if kernel is not None and data.draw(st.booleans()):
        anchor = tuple(data.draw(st.integers(0, length - 1)) for length in kernel.shape[::-1])
    for name in ("erode", "dilate"):
        assert compare(name, picture, kernel, None, anchor, times, border) == "exact"


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", ["uint8", "int16", "float32"])
@given(sizes, sizes, channels, kernels, iterations)
def test_combinations(
    kind: str, dtype: str, height: int, width: int, count: int, kernel: Any, times: int
) -> None:
    picture = image(height, width, count, dtype)
    flag = getattr(cv2, f"MORPH_{kind}")
    assert compare("morphologyEx", picture, flag, kernel, iterations=times) == "exact"


@pytest.mark.parametrize("dtype", ["uint8", "uint16", "int16", "float32", "float64"])
@given(sizes, sizes, st.integers(0, 4), kernels, iterations, st.tuples(*[values] * 4))
def test_given_borders(
    dtype: str, height: int, width: int, count: int, kernel: Any, times: int, given_value: Any
) -> None:
    picture = image(height, width, count, dtype)
    for name in ("erode", "dilate"):
        for value in (given_value, given_value[0]):
            found = compare(name, picture, kernel, iterations=times, borderValue=value)
            assert found == "exact"
    for kind in KINDS:
        flag = getattr(cv2, f"MORPH_{kind}")
        named = {"iterations": times, "borderValue": given_value}
        assert compare("morphologyEx", picture, flag, kernel, **named) == "exact"


@pytest.mark.long
def test_a_photo() -> None:
    for shape in (cv2.MORPH_RECT, cv2.MORPH_ELLIPSE, cv2.MORPH_CROSS):
        for size in (3, 8, 21):
            kernel = cv2.getStructuringElement(shape, (size, size))
            for kind in KINDS:
                flag = getattr(cv2, f"MORPH_{kind}")
                assert compare("morphologyEx", photo()[7:, 3:], flag, kernel) == "exact"


@pytest.mark.parametrize("dtype", ["uint8", "uint16", "int16"])
@given(sizes, sizes, channels)
def test_pyramids(dtype: str, height: int, width: int, count: int) -> None:
    picture = image(height, width, count, dtype)
    for border in (*BORDERS[1:], cv2.BORDER_WRAP):
        assert compare("pyrDown", picture, borderType=border) == "exact"
    assert compare("pyrUp", picture) == "exact"
    half = (width + 1) // 2, (height + 1) // 2
    assert compare("pyrDown", picture, dstsize=half) == "exact"
    assert compare("pyrUp", picture, dstsize=(2 * width, 2 * height)) == "exact"


def test_pyramids_of_a_photo() -> None:
    for dtype, factor in (("uint8", 1), ("uint16", 257)):
        picture = photo().astype(dtype) * np.array(factor, dtype)
        for part in (picture, picture[3:430, 7:]):
            assert compare("pyrDown", part) == "exact"
            assert compare("pyrUp", part) == "exact"


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("erode", (np.zeros((3, 3), np.uint8),)),
        ("erode", (np.ones((3, 3), np.float32),)),
        ("erode", (np.ones((3, 3), np.uint8), None, (3, 0))),
        ("dilate", (None, None, (-1, -1), 1, cv2.BORDER_CONSTANT, (0, 0, 0, 0, 0))),
        ("dilate", (None, None, (-1, -1), 1, cv2.BORDER_WRAP)),
        ("dilate", (None, None, (-1, -1), -1)),
        ("morphologyEx", (cv2.MORPH_HITMISS, np.ones((3, 3), np.uint8))),
        ("morphologyEx", (99, None)),
        ("pyrDown", (None, (3, 3))),
        ("pyrDown", (None, None, cv2.BORDER_CONSTANT)),
        ("pyrUp", (None, (3, 3))),
        ("pyrUp", (None, None, cv2.BORDER_REPLICATE)),
    ],
)
def test_calls_for_opencv_to_judge(name: str, arguments: tuple[Any, ...]) -> None:
    operation = catalog.find(name, "torch")
    assert operation is not None
    assert operation.plan((image(9, 20), *arguments), {}) is None
    assert compare(name, image(0, 20), *arguments) == "host"


def test_given_borders_are_not_for_triton() -> None:
    pytest.importorskip("triton")
    calls: tuple[tuple[str, tuple[Any, ...]], ...] = (
        ("erode", (None,)),
        ("morphologyEx", (cv2.MORPH_OPEN, None)),
    )
    for name, args in calls:
        operation = catalog.find(name, "triton")
        assert operation is not None
        assert operation.plan((image(9, 20), *args), {}) is not None
        assert operation.plan((image(9, 20), *args), {"borderValue": (9, 9, 9, 9)}) is None
