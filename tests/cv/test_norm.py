"""`cv2.norm` on tensors, against OpenCV."""

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
KINDS = ["INF", "L1", "L2"]
sizes = st.tuples(st.integers(1, 90), st.integers(1, 90))


def promised(kind: str, dtype: str) -> str:
    return "host" if (kind, dtype) == ("L2", "int16") else "exact"


@pytest.mark.usefixtures("ipp")
@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("kind", KINDS)
def test_norms_of_integers(kind: str, dtype: str) -> None:
    flag = getattr(cv2, f"NORM_{kind}")

    @given(sizes, st.integers(0, 5), st.integers(0, 16), st.integers(0, 9))
    def check(size: tuple[int, int], channels: int, shift: int, seed: int) -> None:
        first, second = (image(*size, channels, dtype, seed + more) >> shift for more in (0, 1))
        assert compare("norm", first, flag) == promised(kind, dtype)
        assert compare("norm", first, second, flag) == promised(kind, dtype)

    check()


@pytest.mark.usefixtures("ipp")
@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("kind", KINDS)
def test_norms_of_some_pixels(kind: str, dtype: str) -> None:
    flag = getattr(cv2, f"NORM_{kind}")

    @given(sizes, st.integers(0, 5), st.integers(0, 8), st.integers(0, 9))
    def check(size: tuple[int, int], channels: int, rare: int, seed: int) -> None:
        first, second = (image(*size, channels, dtype, seed + more) for more in (0, 1))
        mask = image(*size, 0, seed=seed) >> rare
        is_split = kind == "L2" and channels == 3 and cv2.ipp.useIPP()
        expected = "host" if is_split else promised(kind, dtype)
        assert compare("norm", first, flag, mask) == expected
        assert compare("norm", first, normType=flag, mask=mask) == expected
        assert compare("norm", first, second, flag, mask) == expected

    check()


@pytest.mark.usefixtures("ipp")
@pytest.mark.parametrize("kind", KINDS)
def test_extreme_images(kind: str) -> None:
    flag = getattr(cv2, f"NORM_{kind}")
    assert compare("norm", photo(), flag) == "exact"
    assert compare("norm", photo(), photo()[::-1], flag) == "exact"
    for dtype in INTEGERS:
        limits = np.iinfo(dtype)
        least, most = (np.full((1100, 1700), each, dtype) for each in (limits.min, limits.max))
        for pair in ((least,), (most,), (least, most), (most, least)):
            assert compare("norm", *pair, flag) == promised(kind, dtype)
    assert compare("norm", np.full((4000, 5000), 255, np.uint8), flag) == "exact"


@pytest.mark.usefixtures("ipp")
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("kind", KINDS)
def test_norms_of_numbers(kind: str, dtype: str) -> None:
    flag = getattr(cv2, f"NORM_{kind}")

    @given(sizes, st.integers(0, 5), st.floats(0.001, 1000), st.integers(0, 9))
    def check(size: tuple[int, int], channels: int, scale: float, seed: int) -> None:
        chance = np.random.default_rng(seed)
        shape = (*size, channels) if channels else size
        first, second = (chance.normal(0, scale, shape).astype(dtype) for _ in range(2))
        mask = image(*size, 0, seed=seed) >> 7
        assert compare("norm", first, flag) == "tolerance"
        assert compare("norm", first, second, flag) == "tolerance"
        is_split = kind == "L2" and channels == 3 and cv2.ipp.useIPP()
        expected = "host" if is_split else "tolerance"
        assert compare("norm", first, second, flag, mask) == expected

    check()


def test_ways_to_call_it() -> None:
    picture, other = image(9, 20), image(9, 20, seed=1)
    assert compare("norm", picture) == "exact"
    assert compare("norm", picture, other) == "exact"
    assert compare("norm", picture, normType=cv2.NORM_L1) == "exact"
    assert compare("norm", picture, cv2.NORM_L1, None) == "exact"
    assert compare("norm", picture, src2=other, normType=cv2.NORM_INF, mask=None) == "exact"
    with cv.using("torch"):
        assert cv.norm([picture, other]) == [cv2.norm(picture), cv2.norm(other)]
        assert type(cv.norm(picture, other)) is float


def test_calls_for_opencv_to_judge() -> None:
    picture = image(9, 20)
    for kind in (cv2.NORM_L2SQR, cv2.NORM_HAMMING, 99, 1.0, True):
        assert compare("norm", picture, kind) == "host"
    operation = catalog.find("norm", "torch")
    assert operation is not None
    for mask in (picture, image(8, 20, 0), image(9, 20, 0, "uint16")):
        assert operation.plan((picture, cv2.NORM_L1, mask), {}) is None
        assert operation.plan((picture, picture, cv2.NORM_L1, mask), {}) is None
    assert compare("norm", picture, picture.astype(np.int8)) == "host"
    assert compare("norm", picture, picture[1:]) == "host"
    assert compare("norm", picture, None, cv2.NORM_L1) == "host"
    assert compare("norm", image(9, 20, 3, "int32")) == "host"
