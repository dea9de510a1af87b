"""`cv2.resize` on tensors, against OpenCV."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("torch")
cv2 = pytest.importorskip("cv2")

from tests.cv.differential import compare, image, photo  # noqa: E402 - it imports torch

FLAGS = {
    name: getattr(cv2, f"INTER_{name}")
    for name in ("NEAREST", "NEAREST_EXACT", "LINEAR", "LINEAR_EXACT", "AREA", "LANCZOS4", "CUBIC")
}
EXACT = [name for name in FLAGS if name != "CUBIC"]
sizes = st.integers(1, 90)


@pytest.mark.parametrize("flag", EXACT)
@given(sizes, sizes, st.sampled_from([0, 1, 2, 3, 4]), sizes, sizes)
def test_bytes_are_exact(
    flag: str, height: int, width: int, channels: int, high: int, wide: int
) -> None:
    picture = image(height, width, channels)
    promise = compare("resize", picture, (wide, high), interpolation=FLAGS[flag])
    assert promise == ("host" if flag == "NEAREST_EXACT" and cv2.__version__ < "5" else "exact")


@pytest.mark.parametrize("flag", EXACT)
@given(st.integers(1, 30), st.integers(1, 30), st.integers(1, 4), st.sampled_from([1, 2, 3, 4]))
def test_whole_factors_are_exact(
    flag: str, high: int, wide: int, factor: int, channels: int
) -> None:
    picture = image(high * factor, wide * factor, channels)
    assert compare("resize", picture, (wide, high), interpolation=FLAGS[flag]) == "exact"
    assert compare("resize", image(high, wide, channels), (wide * factor, high * factor)) == "exact"


@pytest.mark.parametrize("flag", FLAGS)
@pytest.mark.parametrize("size", [(224, 224), (100, 700), (1000, 301), (256, 256)])
def test_a_photo(flag: str, size: tuple[int, int]) -> None:
    promise = compare("resize", photo()[3:430, 7:], size, interpolation=FLAGS[flag])
    assert promise == ("lsb1" if flag == "CUBIC" else "exact")


@pytest.mark.parametrize("flag", FLAGS)
@pytest.mark.parametrize("dtype", ["uint16", "float32", "int16"])
@given(sizes, sizes, sizes, sizes)
def test_other_types(flag: str, dtype: str, height: int, width: int, high: int, wide: int) -> None:
    compare("resize", image(height, width, 3, dtype), (wide, high), interpolation=FLAGS[flag])


@pytest.mark.parametrize("flag", FLAGS)
@given(st.sampled_from([1, 2, 3, 4, 5, 6, 8, 12, 33]), st.integers(1, 9), st.integers(1, 9))
def test_one_half_of_any_channels(flag: str, channels: int, high: int, wide: int) -> None:
    picture = image(2 * high, 2 * wide, channels)
    compare("resize", picture, (wide, high), interpolation=FLAGS[flag])


@pytest.mark.parametrize("flag", FLAGS)
@given(st.sampled_from([5, 6, 8, 12, 33]), sizes, sizes, sizes, sizes)
def test_many_channels(
    flag: str, channels: int, height: int, width: int, high: int, wide: int
) -> None:
    compare("resize", image(height, width, channels), (wide, high), interpolation=FLAGS[flag])


factors = st.floats(0.05, 3) | st.sampled_from([0.5, 0.25, 1 / 3, 0.2, 2.0, 1.0])


@given(sizes, sizes, factors, factors)
def test_factors_in_the_place_of_a_size(height: int, width: int, fx: float, fy: float) -> None:
    if round(width * fx) and round(height * fy):
        for flag in (cv2.INTER_LINEAR, cv2.INTER_AREA, cv2.INTER_NEAREST):
            found = compare("resize", image(height, width), None, None, fx, fy, flag)
            assert found == "exact"


@pytest.mark.parametrize("flag", EXACT)
def test_half_of_an_odd_size(flag: str) -> None:
    for channels in (1, 2, 3, 4):
        picture = image(37, 51, channels)
        compare("resize", picture, None, fx=0.5, fy=0.5, interpolation=FLAGS[flag])
        compare("resize", picture, (0, 0), fx=1 / 3, fy=0.25, interpolation=FLAGS[flag])


@pytest.mark.parametrize("size", [(30.0, 20), (0, 20), "ab", None, (1, 2, 3), (-3, 4)])
def test_calls_for_opencv_to_judge(size: Any) -> None:
    assert compare("resize", image(9, 9), size) == "host"
