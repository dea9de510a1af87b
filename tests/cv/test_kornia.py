"""kornia's own pixels, for callers who accept that they are only close."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
cv2 = pytest.importorskip("cv2")
pytest.importorskip("kornia")

from benchmarks.cv_parity import parity  # noqa: E402 - it imports torch
from devicecore import cv  # noqa: E402 - like the others
from devicecore.cv import catalog  # noqa: E402 - it imports torch
from devicecore.errors import NoKernelError  # noqa: E402 - like the others
from tests.cv.differential import IS_OLD, photo  # noqa: E402 - it imports torch

TURN = cv2.getRotationMatrix2D((200, 220), 25, 0.8)
TILT = np.vstack([TURN, (1e-4, -2e-4, 1)])
SHARPER = np.array([(0, -1, 0), (-1, 5, -1), (0, -1, 0)], np.float32)
# The largest share of the values that are off by more than one.
CALLS: list[tuple[str, tuple[Any, ...], float]] = [
    ("resize", ((200, 170),), 0),
    ("resize", ((700, 555), None, 0, 0, cv2.INTER_CUBIC), 0),
    ("resize", (None, None, 0.25, 0.5, cv2.INTER_NEAREST), 0),
    ("cvtColor", (cv2.COLOR_BGR2RGB,), 0),
    ("cvtColor", (cv2.COLOR_BGR2GRAY,), 0),
    ("cvtColor", (cv2.COLOR_BGR2HSV,), 0.01),
    ("cvtColor", (cv2.COLOR_BGR2Lab,), 0.01),
    ("cvtColor", (cv2.COLOR_BGR2YUV,), 0.01),
    ("warpAffine", (TURN, (400, 300)), 0.001),
    ("warpAffine", (TURN, (400, 300), None, cv2.INTER_LINEAR | cv2.WARP_INVERSE_MAP), 0.001),
    ("warpPerspective", (TILT, (400, 300)), 0.001),
    ("GaussianBlur", ((7, 5), 1.5, None, 0.8), 0),
    ("blur", ((5, 3),), 0),
    ("medianBlur", (5,), 0),
    ("filter2D", (-1, SHARPER), 0),
]


@pytest.mark.parametrize(("name", "args", "share"), CALLS, ids=range(len(CALLS)))
def test_pixels_are_close(name: str, args: Any, share: float) -> None:
    if IS_OLD and "warp" in name:
        pytest.skip("OpenCV 4 has other warps")
    picture = photo()
    expected = getattr(cv2, name)(picture, *args)
    with cv.using("kornia"), cv.accept("close"):
        found = getattr(cv, name)(picture, *args)
    assert (found.shape, found.dtype) == (expected.shape, expected.dtype)
    assert np.mean(np.abs(found.astype(int) - expected) > 1) <= share


def test_it_is_taken_only_where_close_is_accepted() -> None:
    with cv.using("kornia"), pytest.raises(NoKernelError, match="close"):
        cv.resize(photo(), (20, 20))
    with cv.accept("close"), cv.using("torch"):  # ours go first in any case
        found = cv.resize(photo(), (200, 170))
    assert np.array_equal(found, cv2.resize(photo(), (200, 170)))


@pytest.mark.parametrize(
    ("name", "args", "reason"),
    [
        ("resize", ((20, 20), None, 0, 0, cv2.INTER_AREA), "interpolation=INTER_AREA"),
        ("GaussianBlur", ((5, 5), 0), "sigmaX"),
        ("filter2D", (cv2.CV_16S, SHARPER), "ddepth=CV_16S"),
        (
            "warpAffine",
            (TURN, (40, 30), None, cv2.INTER_LINEAR, cv2.BORDER_CONSTANT, 7),
            "borderValue=7",
        ),
        ("cvtColor", (cv2.COLOR_BGR2XYZ,), "code=COLOR_BGR2XYZ"),
    ],
)
def test_what_it_does_not_have(name: str, args: Any, reason: str) -> None:
    with cv.using("kornia"), cv.accept("close"), pytest.raises(NoKernelError, match=reason):
        getattr(cv, name)(photo(), *args)


@pytest.mark.parametrize("name", sorted(catalog.KORNIA))
def test_differences_are_measured(name: str) -> None:
    found = parity(name, "kornia", torch.device("cpu"))
    assert found is not None
    assert found["calls"] > 0
    assert found["promises"].keys() == {"close"}
