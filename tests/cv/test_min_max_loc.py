"""`cv2.minMaxLoc`, `reduce` and `integral` on tensors, against OpenCV."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

torch = pytest.importorskip("torch")
cv2 = pytest.importorskip("cv2")
np = pytest.importorskip("numpy")

from devicecore import cv  # noqa: E402 - it imports torch
from devicecore.cv import catalog  # noqa: E402 - like it
from tests.cv.differential import compare, image, photo  # noqa: E402 - it imports torch

sizes = st.tuples(st.integers(1, 90), st.integers(1, 90))
DEPTHS = [-1, cv2.CV_8U, cv2.CV_32S, cv2.CV_32F, cv2.CV_64F]
KINDS = ["SUM", "AVG", "MAX", "MIN", "SUM2"]


@pytest.mark.usefixtures("ipp")
@pytest.mark.parametrize("dtype", ["uint8", "int8", "uint16", "int16", "int32"])
def test_extremes_are_the_first_ones(dtype: str) -> None:
    @given(sizes, st.integers(0, 1), st.integers(0, 31), st.integers(0, 9))
    def check(size: tuple[int, int], channels: int, shift: int, seed: int) -> None:
        picture = image(*size, channels, dtype, seed) >> min(shift, np.iinfo(dtype).bits - 1)
        assert compare("minMaxLoc", picture) == "exact"

    check()


@pytest.mark.usefixtures("ipp")
@pytest.mark.parametrize("dtype", ["uint8", "int8", "uint16", "int16", "int32"])
def test_extremes_of_some_pixels(dtype: str) -> None:
    @given(sizes, st.integers(0, 1), st.integers(0, 31), st.integers(0, 8))
    def check(size: tuple[int, int], channels: int, shift: int, rare: int) -> None:
        picture = image(*size, channels, dtype) >> min(shift, np.iinfo(dtype).bits - 1)
        mask = image(*size, 0, seed=1) >> rare
        assert compare("minMaxLoc", picture, mask) == "exact"

    check()


@pytest.mark.usefixtures("ipp")
def test_extremes_of_photos_and_of_one_value() -> None:
    for channel in range(3):
        assert compare("minMaxLoc", photo()[..., channel]) == "exact"
    for dtype in ("uint8", "int8", "uint16", "int16", "int32"):
        limits = np.iinfo(dtype)
        for value in (limits.min, 0, limits.max):
            assert compare("minMaxLoc", np.full((400, 500), value, dtype)) == "exact"


@pytest.mark.usefixtures("ipp")
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_extremes_of_numbers_are_the_first_ones(dtype: str) -> None:
    @given(sizes, st.floats(-1e30, 1e30), st.integers(1, 300), st.integers(0, 9))
    def check(size: tuple[int, int], scale: float, steps: int, seed: int) -> None:
        plane = (np.floor(image(*size, 0, dtype, seed) * steps) * scale).astype(dtype)
        plane[image(*size, 0, seed=seed + 1) > 250] = np.inf
        assert compare("minMaxLoc", plane) == "close"
        with cv.using("torch"), cv.accept("close"):
            assert cv.minMaxLoc(plane) == cv2.minMaxLoc(plane)

    check()


def test_extremes_are_opencvs_own_kinds() -> None:
    planes = [image(9, 20, 0), image(7, 3, 0)]
    with cv.using("torch"):
        found = cv.minMaxLoc(planes[0])
        assert found == cv2.minMaxLoc(planes[0])
        assert [type(each) for each in found] == [float, float, tuple, tuple]
        assert type(found[2][0]) is int
        assert cv.minMaxLoc(planes) == [cv2.minMaxLoc(each) for each in planes]
    assert compare("minMaxLoc", image(9, 20, 3)) == "host"
    operation = catalog.find("minMaxLoc", "torch")
    assert operation is not None
    assert operation.plan((planes[0], planes[1]), {}) is None


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("kind", KINDS)
@given(sizes, st.integers(0, 5), st.sampled_from(DEPTHS), st.integers(0, 7), st.integers(0, 9))
def test_reduced_bytes_are_exact(
    kind: str, axis: int, size: tuple[int, int], channels: int, depth: int, shift: int, seed: int
) -> None:
    picture = image(*size, channels, seed=seed) >> shift
    promise = compare("reduce", picture, axis, getattr(cv2, f"REDUCE_{kind}"), dtype=depth)
    is_narrow = depth in {-1, cv2.CV_8U}
    expected = {
        "SUM": not is_narrow,
        "SUM2": depth in {cv2.CV_32S, cv2.CV_64F},
        "AVG": True,
    }.get(kind, is_narrow)
    assert promise == ("exact" if expected else "host")


def test_reduced_photos_and_long_rows() -> None:
    white = np.full((65000, 2), 255, np.uint8)
    for kind in KINDS:
        flag = getattr(cv2, f"REDUCE_{kind}")
        for axis in (0, 1):
            for depth in DEPTHS:
                compare("reduce", photo(), axis, flag, dtype=depth)
                compare("reduce", white, axis, flag, dtype=depth)
                compare("reduce", white.T, axis, flag, dtype=depth)
    longer = np.full((66000, 1), 255, np.uint8)
    assert compare("reduce", longer, 0, cv2.REDUCE_SUM, dtype=cv2.CV_32F) == "host"


def test_reductions_for_opencv_to_judge() -> None:
    picture = image(9, 20)
    assert compare("reduce", picture, 2, cv2.REDUCE_MAX) == "host"
    assert compare("reduce", picture, 0, 9) == "host"
    assert compare("reduce", picture, 0, cv2.REDUCE_SUM, dtype=cv2.CV_16S) == "host"
    assert compare("reduce", image(9, 20, 3, "float32"), 0, cv2.REDUCE_MAX) == "host"
    with cv.using("torch"):
        place = np.empty((1, 20, 3), np.uint8)
        assert cv.reduce(picture, 0, cv2.REDUCE_MAX, place) is place
        assert np.array_equal(place, cv2.reduce(picture, 0, cv2.REDUCE_MAX))


@given(sizes, st.integers(0, 5), st.sampled_from([-1, 4, 5, 6]), st.integers(0, 9))
def test_integrals_are_exact(size: tuple[int, int], channels: int, depth: int, seed: int) -> None:
    assert compare("integral", image(*size, channels, seed=seed), sdepth=depth) == "exact"


def test_integrals_of_larger_images() -> None:
    assert compare("integral", photo()) == "exact"
    assert compare("integral", photo(), None, cv2.CV_64F) == "exact"
    assert compare("integral", photo(), None, cv2.CV_32F) == "host"
    white = np.full((2900, 2900), 255, np.uint8)
    assert compare("integral", white) == "exact"
    assert compare("integral", np.full((2902, 2903), 255, np.uint8)) == "host"
    assert compare("integral", np.full((2902, 2903), 255, np.uint8), None, cv2.CV_64F) == "exact"


def test_integrals_for_opencv_to_judge() -> None:
    assert compare("integral", image(9, 20, 3, "uint16")) == "host"
    assert compare("integral", image(9, 20), sdepth=0) == "host"
    assert compare("integral", image(9, 20), np.zeros((10, 21, 3), np.int32)) == "exact"
