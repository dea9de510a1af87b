"""`cv2.sumElems`, `mean`, `meanStdDev` and `countNonZero` on tensors, against OpenCV."""

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

INTEGERS = ["uint8", "int8", "uint16", "int16"]
SUMS = ["sumElems", "mean", "meanStdDev"]
sizes = st.tuples(st.integers(1, 90), st.integers(1, 90))


@pytest.mark.usefixtures("ipp")
@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("name", SUMS)
def test_sums_of_integers_are_exact(name: str, dtype: str) -> None:
    @given(sizes, st.integers(0, 4), st.integers(0, 16), st.integers(0, 9))
    def check(size: tuple[int, int], channels: int, shift: int, seed: int) -> None:
        assert compare(name, image(*size, channels, dtype, seed) >> shift) == "exact"

    check()


@pytest.mark.usefixtures("ipp")
@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("name", ["mean", "meanStdDev"])
def test_sums_of_some_pixels(name: str, dtype: str) -> None:
    @given(sizes, st.integers(0, 4), st.integers(0, 8), st.integers(0, 9))
    def check(size: tuple[int, int], channels: int, rare: int, seed: int) -> None:
        picture, mask = image(*size, channels, dtype, seed), image(*size, 0, seed=seed) >> rare
        assert compare(name, picture, mask=mask) == "exact"
        assert compare(name, picture, mask=mask.view(np.int8)) == "exact"

    check()


@pytest.mark.usefixtures("ipp")
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", ["mean", "meanStdDev"])
def test_sums_of_numbers(name: str, dtype: str) -> None:
    @given(sizes, st.integers(0, 4), st.floats(0.001, 1000), st.integers(0, 9))
    def check(size: tuple[int, int], channels: int, scale: float, seed: int) -> None:
        picture = (image(*size, channels, dtype, seed) * scale).astype(dtype)
        mask = image(*size, 0, seed=seed) >> 7
        assert compare(name, picture) == "tolerance"
        assert compare(name, picture, mask=mask) == "tolerance"

    check()


@pytest.mark.usefixtures("ipp")
@pytest.mark.parametrize("name", SUMS)
def test_extreme_images(name: str) -> None:
    assert compare(name, photo()) == "exact"
    for dtype in INTEGERS:
        limits = np.iinfo(dtype)
        for value in (limits.min, limits.max):
            assert compare(name, np.full((1100, 1700), value, dtype)) == "exact"


@pytest.mark.usefixtures("ipp")
def test_many_pixels() -> None:
    for name in SUMS:
        assert compare(name, np.full((4000, 5000), 255, np.uint8)) == "exact"
    assert compare("meanStdDev", np.full((2000, 1100), 7, np.uint16)) == "host"


@pytest.mark.usefixtures("ipp")
@pytest.mark.parametrize("dtype", [*INTEGERS, "int32", "float32", "float64"])
def test_counts_are_exact(dtype: str) -> None:
    @given(sizes, st.integers(0, 1), st.integers(0, 9))
    def check(size: tuple[int, int], channels: int, seed: int) -> None:
        picture = image(*size, channels, dtype, seed)
        picture[image(*size, channels, seed=seed + 1) > 99] = 0
        assert compare("countNonZero", picture) == "exact"

    check()


def test_numbers_that_are_hardly_any() -> None:
    for dtype in ("float32", "float64"):
        odd = np.array([[0.0, -0.0, np.nan, np.inf, 1e-45, 5e-324] * 9], dtype)
        assert compare("countNonZero", odd) == "exact"


def test_results_are_opencvs_own_kinds() -> None:
    pictures = [image(9, 20), image(9, 20, seed=1), image(7, 3)]
    with cv.using("torch"):
        assert cv.mean(pictures[0]) == cv2.mean(pictures[0])
        assert type(cv.mean(pictures[0])) is tuple
        assert type(cv.sumElems(pictures[0])[0]) is float
        assert cv.mean(pictures) == [cv2.mean(each) for each in pictures]
        assert cv.sumElems(np.stack(pictures[:2])) == [cv2.sumElems(each) for each in pictures[:2]]
        plane = pictures[0][..., 0]
        assert cv.countNonZero(plane) == cv2.countNonZero(plane)
        assert type(cv.countNonZero(plane)) is int
        for found, picture in zip(cv.meanStdDev(pictures), pictures, strict=True):
            for ours, theirs in zip(found, cv2.meanStdDev(picture), strict=True):
                assert np.array_equal(ours, theirs)
                assert ours.shape == theirs.shape


@pytest.mark.parametrize("name", SUMS)
def test_calls_for_opencv_to_judge(name: str) -> None:
    assert compare(name, image(9, 20, 3, "int32")) == "host"
    assert compare("sumElems", image(9, 20, 3, "float32")) == "host"
    if name != "sumElems":
        operation = catalog.find(name, "torch")
        assert operation is not None
        for mask in (image(9, 20), image(8, 20, 0), image(9, 20, 0, "uint16")):
            assert operation.plan((image(9, 20),), {"mask": mask}) is None
    assert compare(name, image(9, 20, 5)) == ("exact" if name == "meanStdDev" else "host")
    assert compare("countNonZero", image(9, 20)) == "host"


def test_roots_are_rounded_once() -> None:
    from devicecore.cv.torch_support.sqrt import rounded_sqrt

    chance = np.random.default_rng(3)
    for scale in (1, 5e3, 1e9, 1e19):
        values = np.concatenate([[0.0, 1.0, 4.0, 2.0], chance.random(1_000_000) * scale])
        assert np.array_equal(rounded_sqrt(torch.from_numpy(values)).numpy(), np.sqrt(values))
    squares = chance.integers(0, 1 << 53, 1_000_000).astype(np.float64)
    assert np.array_equal(rounded_sqrt(torch.from_numpy(squares)).numpy(), np.sqrt(squares))
