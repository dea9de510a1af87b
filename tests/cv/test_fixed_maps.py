"""`cv2.remap` with maps in fixed point and `cv2.undistort` on tensors, against OpenCV."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("torch")
cv2 = pytest.importorskip("cv2")
np = pytest.importorskip("numpy")

from devicecore import cv  # noqa: E402 - it imports torch
from devicecore.cv import catalog  # noqa: E402 - like it
from tests.cv.differential import compare, image, photo  # noqa: E402 - it imports torch

BORDERS = [
    cv2.BORDER_CONSTANT,
    cv2.BORDER_REPLICATE,
    cv2.BORDER_REFLECT,
    cv2.BORDER_REFLECT_101,
    cv2.BORDER_WRAP,
]
sizes = st.integers(1, 40)


@pytest.mark.parametrize("border", BORDERS)
@given(sizes, sizes, sizes, sizes, st.integers(0, 5), st.integers(0, 9))
def test_maps(
    border: int, height: int, width: int, high: int, wide: int, count: int, seed: int
) -> None:
    chance = np.random.default_rng(seed)
    places = chance.integers(-9, 50, (high, wide, 2), np.int16)
    parts = chance.integers(0, 1 << (10 if seed % 2 else 16), (high, wide), np.uint16)
    value = (7, 80, 200, 9) if count <= 4 else 0
    picture = image(height, width, count)
    named: dict[str, Any] = {"borderMode": border, "borderValue": value}
    found = compare("remap", picture, places, parts, cv2.INTER_LINEAR, **named)
    assert found == "exact"


def test_converted_maps_on_a_photo() -> None:
    y, x = np.indices((300, 411)).astype(np.float32)
    maps = x * 1.1 + 9 * np.sin(y / 20), y * 1.3 + 7 * np.cos(x / 30)
    fixed = cv2.convertMaps(*map(np.float32, maps), cv2.CV_16SC2)
    assert compare("remap", photo(), *fixed, cv2.INTER_LINEAR) == "exact"


def test_fixed_maps_are_not_for_triton() -> None:
    pytest.importorskip("triton")
    operation = catalog.find("remap", "triton")
    assert operation is not None
    places, parts = np.zeros((5, 6, 2), np.int16), np.zeros((5, 6), np.uint16)
    assert operation.plan((image(9, 20), places, parts, cv2.INTER_LINEAR), {}) is None


@given(
    st.integers(2, 60),
    st.integers(2, 60),
    st.integers(0, 4),
    st.sampled_from([4, 5, 8, 12, 14]),
    st.booleans(),
    st.integers(0, 99),
)
def test_lenses(height: int, width: int, count: int, number: int, has_new: bool, seed: int) -> None:
    chance = np.random.default_rng(seed)
    focus = chance.uniform(0.5, 2, 2) * (width + height)
    middle = chance.uniform(0.3, 0.7, 2) * (width, height)
    camera = np.array([[focus[0], 0, middle[0]], [0, focus[1], middle[1]], [0, 0, 1]])
    bent = chance.normal(0, 0.05, number)
    new = camera * (0.8, 0.9, 1) if has_new else None
    picture = image(height, width, count)
    assert compare("undistort", picture, camera, bent, newCameraMatrix=new) == "exact"
    assert compare("undistort", picture, camera.astype(np.float32), None) == "exact"


def test_a_lens_on_a_photo() -> None:
    camera = np.array([[480.0, 0, 250], [0, 470, 260.5], [0, 0, 1]])
    bent = np.array([-0.31, 0.12, 0.001, -0.002, 0.04])
    assert compare("undistort", photo(), camera, bent) == "exact"
    wide = cv2.resize(photo(), (1900, 700))
    assert compare("undistort", wide, camera, bent, None, camera * (0.7, 1.1, 1)) == "exact"


def test_calls_for_opencv_to_judge() -> None:
    picture, camera = image(20, 30), np.eye(3)
    assert compare("undistort", image(20, 30, 3, "float32"), camera, None) == "host"
    places, parts = np.zeros((5, 6, 2), np.int16), np.zeros((5, 6), np.uint16)
    assert compare("remap", picture, places, None, cv2.INTER_LINEAR) == "host"
    assert compare("remap", picture, places, parts, cv2.INTER_NEAREST) == "host"
    numbers = image(20, 30, 3, "float32")
    assert compare("remap", numbers, places, parts, cv2.INTER_LINEAR) == "host"
    with pytest.raises(cv2.error):
        cv.undistort(picture, np.eye(2), None)
    with pytest.raises(cv2.error):
        cv.undistort(picture, camera, np.zeros(7))
