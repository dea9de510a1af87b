"""`cv2.warpPolar` on tensors, against OpenCV."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("torch")
cv2 = pytest.importorskip("cv2")
np = pytest.importorskip("numpy")

from devicecore.cv import catalog  # noqa: E402 - it imports torch
from tests.cv.differential import compare, image, photo  # noqa: E402 - it imports torch

pytestmark = pytest.mark.skipif(cv2.__version__ < "5", reason="OpenCV 4 warps otherwise")

sizes = st.integers(2, 60)
KINDS = [cv2.WARP_POLAR_LINEAR, cv2.WARP_POLAR_LOG]
WAYS = [0, cv2.WARP_INVERSE_MAP]
FLAGS = [cv2.INTER_NEAREST, cv2.INTER_LINEAR, cv2.INTER_CUBIC]


@pytest.mark.parametrize("flag", FLAGS)
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", KINDS)
@given(
    sizes,
    sizes,
    sizes,
    sizes,
    st.sampled_from([0, 1, 3, 4]),
    st.floats(-9, 70),
    st.floats(-9, 70),
    st.floats(2, 90),
)
def test_warps(
    kind: int,
    way: int,
    flag: int,
    height: int,
    width: int,
    high: int,
    wide: int,
    count: int,
    x: float,
    y: float,
    radius: float,
) -> None:
    picture = image(height, width, count)
    flags = kind | way | flag | cv2.WARP_FILL_OUTLIERS
    assert compare("warpPolar", picture, (wide, high), (x, y), radius, flags) == "exact"


@pytest.mark.parametrize("dtype", ["uint16", "float32"])
@pytest.mark.parametrize("way", WAYS)
def test_other_types(dtype: str, way: int) -> None:
    flags = cv2.INTER_LINEAR | way | cv2.WARP_FILL_OUTLIERS
    picture = image(40, 51, 3, dtype)
    assert compare("warpPolar", picture, (33, 47), (20.3, 22), 19.5, flags) == "exact"


@pytest.mark.parametrize("flag", FLAGS[:2])
@pytest.mark.parametrize("kind", KINDS)
def test_photos(kind: int, flag: int) -> None:
    for size in ((0, 0), (200, 0), (300, 400)):
        flags = flag | kind | cv2.WARP_FILL_OUTLIERS
        assert compare("warpPolar", photo(), size, (256, 256), 300, flags) == "exact"
        turned = cv2.warpPolar(photo(), size, (256, 256), 300, flags)
        back = flags | cv2.WARP_INVERSE_MAP
        assert compare("warpPolar", turned, (512, 512), (256, 256), 300, back) == "exact"


def test_without_a_border_all_places_are_inside() -> None:
    assert compare("warpPolar", photo(), (100, 100), (256, 250), 240, cv2.INTER_LINEAR) == "exact"
    operation = catalog.find("warpPolar", "torch")
    assert operation is not None
    for args in (((100, 100), (256, 250), 300, 1), ((9, 9), (5, 5), 4, 1 | 32)):
        assert operation.plan((photo(), *args), {}) is None


@pytest.mark.parametrize(
    "args",
    [((9, 9), (5, 5), -4, 9), ((9, 9), (5, 5), float("nan"), 9), ((9, 9), (5, 5), 1, 9 | 256)],
)
def test_calls_for_opencv_to_judge(args: tuple[object, ...]) -> None:
    assert compare("warpPolar", image(20, 20), *args) == "host"
    assert compare("warpPolar", image(20, 20, 2), (9, 9), (5, 5), 4, 9) == "host"
