"""`cv2.createCLAHE` on tensors, against OpenCV."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

torch = pytest.importorskip("torch")
cv2 = pytest.importorskip("cv2")
np = pytest.importorskip("numpy")

from devicecore import cv  # noqa: E402 - it imports torch
from tests.cv.differential import compare, image, photo  # noqa: E402 - it imports torch

sizes = st.integers(1, 70)
tiles = st.integers(1, 16)
limits = st.floats(-1, 60) | st.sampled_from([0, 1, 2, 40])


@given(sizes, sizes, limits, tiles, tiles, st.integers(0, 7))
def test_bytes(height: int, width: int, limit: float, across: int, down: int, shift: int) -> None:
    picture = image(height, width, 0) >> shift
    assert compare("CLAHE_apply", picture, limit, (across, down)) == "exact"
    assert compare("CLAHE_apply", picture, limit, (across, down), shift) == "exact"


@given(sizes, sizes, limits, st.integers(1, 4), st.integers(0, 15))
def test_uint16(height: int, width: int, limit: float, count: int, shift: int) -> None:
    picture = image(height, width, 0, "uint16")
    assert compare("CLAHE_apply", picture, limit, (count, 3), shift) == "exact"


@pytest.mark.parametrize("limit", [0.0, 1.0, 2.0, 4.0, 40.0])
@pytest.mark.parametrize("grid", [(8, 8), (4, 6), (16, 16), (1, 1)])
def test_photos(limit: float, grid: tuple[int, int]) -> None:
    gray = cv2.cvtColor(photo(), cv2.COLOR_BGR2GRAY)
    assert compare("CLAHE_apply", gray, limit, grid) == "exact"
    assert compare("CLAHE_apply", gray[:300, :401], limit, grid) == "exact"


def test_an_object_is_used_as_opencvs() -> None:
    picture, ours, theirs = image(40, 50, 0), cv.createCLAHE(), cv2.createCLAHE()
    for each in (ours, theirs):
        each.setClipLimit(3.5)
        each.setTilesGridSize((4, 3))
    assert (ours.getClipLimit(), ours.getTilesGridSize()) == (3.5, (4, 3))
    wanted = theirs.apply(picture)
    assert np.array_equal(ours.apply(picture), wanted)
    with cv.using("torch"):
        kept = np.empty_like(picture)
        assert ours.apply(picture, dst=kept) is kept
        assert np.array_equal(kept, wanted)
        found = ours.apply(torch.from_numpy(picture))
        assert isinstance(found, torch.Tensor)
        assert np.array_equal(found.numpy(), wanted)
        both = cv.createCLAHE(3.5, tileGridSize=(4, 3)).apply([picture, picture[:20]])
        assert np.array_equal(both[0], wanted)
        assert np.array_equal(both[1], theirs.apply(picture[:20]))
    for each in (ours, theirs):
        each.setBitShift(3)
    with cv.using("torch"):
        assert np.array_equal(ours.apply(picture), theirs.apply(picture))


def test_calls_for_opencv_to_judge() -> None:
    assert compare("CLAHE_apply", image(9, 20, 0), 1e12, (4, 4)) == "host"
    with pytest.raises(cv2.error):
        cv.createCLAHE().apply(image(9, 20))
    with pytest.raises(TypeError, match="clipLimit"):
        cv.createCLAHE("a")
