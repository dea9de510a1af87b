"""`cv2.cvtColor` on tensors, against OpenCV."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("torch")
cv2 = pytest.importorskip("cv2")
np = pytest.importorskip("numpy")

from devicecore.cv.environment import environment  # noqa: E402 - it imports OpenCV
from tests.cv.differential import compare, image, photo  # noqa: E402 - it imports torch

if TYPE_CHECKING:
    from collections.abc import Iterator

ALPHAS = ("BGR", "RGB", "BGRA", "RGBA")
SHUFFLES = [f"{a}2{b}" for a in ALPHAS for b in ALPHAS if a != b]
SPACES = ["XYZ", "YCrCb", "YUV", "HSV", "HLS", "Lab", "Luv"]
TO_SPACES = [f"{order}2{space}" for order in ("BGR", "RGB") for space in SPACES]
FROM_SPACES = [f"{space}2{order}" for order in ("BGR", "RGB") for space in SPACES]
TO_GRAY = [f"{order}2GRAY" for order in ALPHAS]
FROM_GRAY = [f"GRAY2{order}" for order in ALPHAS]
TO_FULL = [f"{order}2HSV_FULL" for order in ("BGR", "RGB")]
TO_PLANES = [f"{order}2YUV_{kind}" for order in ALPHAS for kind in ("I420", "YV12")]
PLANES = [f"YUV2{order}_{kind}" for order in ALPHAS for kind in ("I420", "YV12", "NV12", "NV21")]

# Widths on both sides of what OpenCV computes with vectors.
sizes = st.tuples(st.integers(1, 9), st.integers(1, 90))
channels_asked = st.sampled_from([0, -1, 3, 4])


def code_of(name: str) -> int:
    return int(getattr(cv2, f"COLOR_{name}"))


@pytest.fixture(params=["IPP", "no IPP", "no vectors"])
def machine(request: pytest.FixtureRequest) -> Iterator[str]:
    """Compute with or without parts of OpenCV that may round otherwise."""
    used_ipp = cv2.ipp.useIPP()
    cv2.setUseOptimized(request.param != "no vectors")  # which also sets the other one
    cv2.ipp.setUseIPP(request.param == "IPP")
    yield request.param
    cv2.setUseOptimized(True)
    cv2.ipp.setUseIPP(used_ipp)


@pytest.mark.parametrize("name", [*TO_GRAY, *TO_SPACES, *TO_FULL])
@given(sizes, st.sampled_from([3, 4]))
def test_colours_to_spaces_are_exact(name: str, size: tuple[int, int], channels: int) -> None:
    assert compare("cvtColor", image(*size, channels), code_of(name)) == "exact"


@pytest.mark.parametrize("name", FROM_SPACES)
@given(sizes, channels_asked)
def test_spaces_to_colours_are_exact(name: str, size: tuple[int, int], asked: int) -> None:
    assert compare("cvtColor", image(*size), code_of(name), None, asked) == "exact"


@pytest.mark.parametrize("name", SHUFFLES)
@pytest.mark.parametrize("dtype", ["uint8", "uint16", "float32"])
@given(sizes, st.sampled_from([3, 4]), channels_asked)
def test_orders_of_channels(
    name: str, dtype: str, size: tuple[int, int], channels: int, asked: int
) -> None:
    picture = image(*size, channels, dtype)
    assert compare("cvtColor", picture, code_of(name), dstCn=asked) == "exact"


@pytest.mark.parametrize("name", FROM_GRAY)
@pytest.mark.parametrize("dtype", ["uint8", "uint16", "float32"])
@given(sizes, st.sampled_from([0, 1]), channels_asked)
def test_gray_to_colours(
    name: str, dtype: str, size: tuple[int, int], channels: int, asked: int
) -> None:
    picture = image(*size, channels, dtype)
    assert compare("cvtColor", picture, code_of(name), dstCn=asked) == "exact"


@pytest.mark.parametrize("name", [*TO_GRAY, *TO_SPACES, *FROM_SPACES])
@pytest.mark.parametrize("dtype", ["uint16", "float32"])
@given(sizes, st.sampled_from([3, 4]))
def test_other_types(name: str, dtype: str, size: tuple[int, int], channels: int) -> None:
    promise = compare("cvtColor", image(*size, channels, dtype), code_of(name))
    is_sum = any(space in name for space in ("GRAY", "XYZ", "YCrCb", "YUV"))
    if dtype == "uint16" and is_sum:
        assert promise == ("host" if channels == 4 and name in FROM_SPACES else "exact")
    else:
        assert promise == ("tolerance" if name in TO_GRAY else "host")


@pytest.mark.parametrize("name", [*TO_SPACES, *FROM_SPACES, *TO_FULL])
def test_a_photo(name: str) -> None:
    assert compare("cvtColor", photo()[5:, 3:501], code_of(name)) == "exact"


@pytest.mark.parametrize(
    "name", ["BGR2HSV", "HSV2BGR", "HSV2RGB_FULL", "BGR2HLS", "RGB2HLS_FULL", "HLS2BGR_FULL"]
)
def test_hues_follow_the_machine(name: str, machine: str) -> None:
    promises = {compare("cvtColor", image(64, width), code_of(name)) for width in (1, 7, 63, 513)}
    if name == "HLS2BGR_FULL":
        assert promises == {"lsb1"}
    elif name.endswith("FULL") and machine == "IPP" and environment().uses_ipp:
        assert promises == {"host" if "2HLS" in name else "lsb1"}
    else:
        assert promises == {"exact"}


@pytest.mark.parametrize("name", PLANES)
@given(st.integers(1, 7), st.integers(1, 40), channels_asked)
def test_planes_to_colours_are_exact(name: str, third: int, half: int, asked: int) -> None:
    picture = image(3 * third, 2 * half, 0)
    assert compare("cvtColor", picture, code_of(name), dstCn=asked) == "exact"
    assert compare("cvtColor", picture, cv2.COLOR_YUV2GRAY_420) == "exact"


@pytest.mark.parametrize("name", TO_PLANES)
@given(st.integers(1, 20), st.integers(1, 20), st.sampled_from([3, 4]))
def test_colours_to_planes_are_exact(name: str, high: int, wide: int, channels: int) -> None:
    picture = image(2 * high, 2 * wide, channels)
    assert compare("cvtColor", picture, code_of(name)) == "exact"


@pytest.mark.parametrize(
    ("shape", "code", "asked"),
    [
        ((6, 8, 2), cv2.COLOR_BGR2GRAY, 0),
        ((6, 8), cv2.COLOR_BGR2HSV, 0),
        ((6, 8, 1), cv2.COLOR_BGR2RGB, 0),
        ((6, 8, 4), cv2.COLOR_HSV2BGR, 0),
        ((6, 8, 3), cv2.COLOR_BGR2BGRA, 2),
        ((6, 8, 3), cv2.COLOR_BGR2BGRA, 5),
        ((6, 8, 3), cv2.COLOR_BGR2BGRA, True),
        ((6, 8, 3), cv2.COLOR_BGR2BGRA, 3.0),
        ((6, 8, 3), 6.0, 0),
        ((6, 8, 3), True, 0),
        ((6, 8, 3), 10_000, 0),
        ((6, 8, 3), -1, 0),
        ((6, 8, 3), None, 0),
        ((0, 8, 3), cv2.COLOR_BGR2RGB, 0),
        ((7, 8), cv2.COLOR_YUV2BGR_I420, 0),
        ((6, 7), cv2.COLOR_YUV2BGR_NV12, 0),
        ((6, 8, 3), cv2.COLOR_YUV2BGR_NV12, 0),
        ((5, 8, 3), cv2.COLOR_BGR2YUV_I420, 0),
        ((6, 7, 3), cv2.COLOR_BGR2YUV_YV12, 0),
    ],
)
def test_calls_for_opencv_to_judge(shape: tuple[int, ...], code: Any, asked: Any) -> None:
    assert compare("cvtColor", np.zeros(shape, np.uint8), code, dstCn=asked) == "host"


@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "float64"])
def test_types_that_opencv_refuses(dtype: str) -> None:
    assert compare("cvtColor", image(6, 8, 3, dtype), cv2.COLOR_BGR2RGB) == "host"


def test_an_approximate_result_is_left_to_opencv() -> None:
    found = compare("cvtColor", image(6, 8), cv2.COLOR_BGR2GRAY, hint=cv2.ALGO_HINT_APPROX)
    assert found == "host"


def test_numbers_of_numpy_are_codes() -> None:
    assert compare("cvtColor", image(6, 8), np.int32(cv2.COLOR_BGR2GRAY)) == "exact"


# Of one column, of whole vectors, and of both.
@pytest.mark.slow
@pytest.mark.parametrize("width", [1, 4096, 32])
@pytest.mark.parametrize("name", [*TO_GRAY[:2], *TO_SPACES, *FROM_SPACES, *TO_FULL])
def test_every_colour(name: str, width: int) -> None:
    chunk = 1 << 18
    for start in range(0, 1 << 24, chunk):
        numbers = np.arange(start, start + chunk, dtype="<u4").view(np.uint8)
        picture = np.ascontiguousarray(numbers.reshape(-1, width, 4)[..., :3])
        assert compare("cvtColor", picture, code_of(name)) == "exact"


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["I420", "NV21"])
def test_every_colour_of_planes(kind: str) -> None:
    # Four values of luma beside each value of chroma: a quarter of all luma in each turn.
    u, v = np.meshgrid(np.arange(256, dtype=np.uint8), np.arange(256, dtype=np.uint8))
    for first in range(0, 256, 4):
        luma = np.tile(np.arange(4, dtype=np.uint8).reshape(2, 2) + first, (256, 256))
        chroma = np.dstack([v, u]) if kind == "NV21" else np.stack([u, v])
        picture = np.concatenate([luma, chroma.reshape(256, 512)])
        assert compare("cvtColor", picture, code_of(f"YUV2BGR_{kind}")) == "exact"
