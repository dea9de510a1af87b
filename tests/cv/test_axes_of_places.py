"""Places for results with other axes than the result, against OpenCV."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
cv2 = pytest.importorskip("cv2")

from devicecore import cv  # noqa: E402 - like the others
from devicecore.errors import NoKernelError  # noqa: E402 - like the others
from devicecore.migrate import PipelineMigrator  # noqa: E402 - like the others
from tests.cv.differential import image  # noqa: E402 - it imports torch

if TYPE_CHECKING:
    from collections.abc import Callable

SHAPES = [
    ([16], [(16,), (16, 1), (16, 1, 1), (1, 16), (4,)]),
    ([1], [(1,), (1, 1), (1, 1, 1)]),
    ([5, 1], [(5, 1), (5, 1, 1), (1, 5), (5,)]),
    ([5, 4], [(5, 4), (5, 4, 1), (4, 5), (20, 1)]),
]


@pytest.mark.parametrize("kind", [np.copy, torch.from_numpy])
@pytest.mark.parametrize(
    ("sizes", "shape"), [(sizes, shape) for sizes, shapes in SHAPES for shape in shapes]
)
def test_histograms_in_places_of_any_axes(
    kind: Any, sizes: list[int], shape: tuple[int, ...]
) -> None:
    picture, place = image(6, 8, 2), np.zeros(shape, np.float32)
    rest = ([*range(len(sizes))], None, sizes, [0, 256] * len(sizes))
    expected, own = cv2.calcHist([picture], *rest, place), kind(np.zeros(shape, np.float32))
    with cv.using("torch"):
        if len(shape) < len(sizes):  # for OpenCV to judge: 4 takes it, 5 does not
            with pytest.raises(NoKernelError, match="hist"):
                cv.calcHist([kind(picture)], *rest, own)
            return
        found = cv.calcHist([kind(picture)], *rest, own)
    assert (found is own, found.shape) == (expected is place, expected.shape)
    assert np.array_equal(found, expected)


@pytest.mark.parametrize("shape", [(6,), (6, 1), (6, 1, 1), (1, 6)])
def test_planes_of_one_column_in_places_of_any_axes(shape: tuple[int, ...]) -> None:
    picture = image(6, 1, 2)
    places, own = ([np.zeros(shape, np.uint8) for _ in range(2)] for _ in range(2))
    expected = cv2.split(picture, places)
    with cv.using("torch"):
        if len(shape) == 1:  # for OpenCV to judge: 4 takes it, 5 does not
            with pytest.raises(NoKernelError, match="two axes"):
                cv.split(picture, own)
            return
        found = cv.split(picture, own)
    for one, place, wanted, before in zip(found, own, expected, places, strict=True):
        assert (one is place, one.shape) == (wanted is before, wanted.shape)
        assert np.array_equal(one, wanted)


PLACES: dict[str, Callable[[], tuple[Any, Any]]] = {
    "of one axis": lambda: (np.full((1, 1, 1), 5, np.uint8), np.zeros(1, np.uint8)),
    "of swapped bytes": lambda: (
        np.arange(12, dtype=np.int16).reshape(3, 4),
        np.zeros((3, 4), ">i2"),
    ),
}


@pytest.mark.parametrize("how", PLACES)
def test_places_that_opencv_sees_otherwise(how: str) -> None:
    """They are left to it."""
    picture, place = PLACES[how]()
    expected = cv2.flip(picture, 0, place)
    assert expected is place
    with cv.using("torch"), pytest.raises(NoKernelError, match="dst"):
        cv.flip(picture, 0, PLACES[how]()[1])
    options = {"device": "cpu", "kernel": "torch"}
    _, other = PLACES[how]()
    with PipelineMigrator({"cv2.flip": options}):
        assert cv2.flip(picture, 0, other) is other
    assert other.tobytes() == place.tobytes()
