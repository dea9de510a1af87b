"""`cv2.calcHist` and `cv2.equalizeHist` on tensors, against OpenCV."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

torch = pytest.importorskip("torch")
cv2 = pytest.importorskip("cv2")
np = pytest.importorskip("numpy")

from devicecore.cv import catalog  # noqa: E402
from tests.cv.differential import compare, image, photo  # noqa: E402 - it imports torch

sizes = st.tuples(st.integers(1, 90), st.integers(1, 90))
RANGES = [0, 256]


@given(sizes, st.integers(0, 255), st.integers(1, 256), st.integers(0, 5))
def test_equalized_planes_are_exact(
    size: tuple[int, int], darkest: int, spread: int, seed: int
) -> None:
    values = image(*size, 0, seed=seed).astype(int) % min(spread, 256 - darkest)
    assert compare("equalizeHist", (darkest + values).astype(np.uint8)) == "exact"


def test_equalized_photos() -> None:
    for channel in range(3):
        assert compare("equalizeHist", photo()[..., channel]) == "exact"
    assert compare("equalizeHist", image(40, 50, 1)) == "exact"


def test_an_equalized_batch_has_a_histogram_for_each_image() -> None:
    operation = catalog.find("equalizeHist", "torch")
    assert operation is not None
    pictures = [photo()[..., channel] // (channel + 1) for channel in range(3)]
    found = operation.run(None, torch.from_numpy(np.stack(pictures)[..., None]))
    for picture, one in zip(pictures, found, strict=True):
        assert np.array_equal(one[..., 0].numpy(), cv2.equalizeHist(picture))


@given(sizes, st.integers(1, 4), st.data())
def test_histograms_are_exact(size: tuple[int, int], channels: int, data: st.DataObject) -> None:
    channel = data.draw(st.integers(0, channels - 1))
    picture = image(*size, channels)
    assert compare("calcHist", [picture], [channel], None, [256], RANGES) == "exact"
    assert compare("calcHist", (picture,), (channel,), None, (256,), (0.0, 256.0)) == "exact"


bins = st.tuples(st.integers(1, 300), st.floats(-20, 200, width=32), st.floats(0.5, 300, width=32))


@given(sizes, st.lists(st.tuples(st.integers(0, 4), bins), min_size=1, max_size=2), st.booleans())
def test_bins_of_any_width(
    size: tuple[int, int], axes: list[tuple[int, Any]], has_mask: bool
) -> None:
    pictures = [image(*size, 3), image(*size, 0, seed=1), image(*size, 1, seed=2)]
    places, counts = [place for place, _ in axes], [count for _, (count, _, _) in axes]
    ranges = [limit for _, (_, low, more) in axes for limit in (low, low + more)]
    mask = image(*size, 0, seed=3) >> 7 if has_mask else None
    assert compare("calcHist", pictures, places, mask, counts, ranges) == "exact"


def test_bins_of_three_channels() -> None:
    ranges = [0, 180, 0, 256, 10, 250.5]
    assert compare("calcHist", [photo()], [0, 1, 2], None, [18, 8, 9], ranges) == "exact"


@given(sizes, st.integers(1, 4), st.integers(0, 3))
def test_histograms_of_some_pixels(size: tuple[int, int], channels: int, rare: int) -> None:
    mask = image(*size, 0, seed=1) >> (5 + rare)
    found = compare("calcHist", [image(*size, channels)], [channels - 1], mask, [256], RANGES)
    assert found == "exact"


def test_the_histogram_of_a_plane() -> None:
    picture = np.ascontiguousarray(photo()[..., 1])
    assert compare("calcHist", [picture], [0], None, [256], RANGES) == "exact"


@pytest.mark.parametrize(
    ("images", "channels", "mask", "bins", "ranges"),
    [
        ([image(4, 5)], [0], image(4, 5, 0).view("int8"), [256], RANGES),
        ([image(4, 5)], [3], None, [256], RANGES),
        ([image(4, 5)], [0, 1, 2, 0], None, [2] * 4, RANGES * 4),
        ([image(4, 5)], [0, 1, 2], None, [4, 4, 1], RANGES * 3),
        ([image(4, 5)], [0, 1], None, [4096, 4096], RANGES * 2),
        ([image(4, 5), image(4, 5, 0, "uint16")], [0], None, [256], RANGES),
        ([image(4, 5, 3, "uint16")], [0], None, [256], RANGES),
        ([image(4, 5, 3, "float32")], [0], None, [256], RANGES),
        (image(4, 5), [0], None, [256], RANGES),
    ],
)
def test_histograms_for_opencv(
    images: Any, channels: Any, mask: Any, bins: Any, ranges: Any
) -> None:
    assert compare("calcHist", images, channels, mask, bins, ranges) == "host"


@pytest.mark.parametrize(("channels", "dtype"), [(3, "uint8"), (0, "uint16"), (0, "float32")])
def test_planes_for_opencv(channels: int, dtype: str) -> None:
    assert compare("equalizeHist", image(4, 5, channels, dtype)) == "host"
