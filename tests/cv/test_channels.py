"""`cv2.split`, `merge`, `extractChannel` and `insertChannel` on tensors, against OpenCV."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

torch = pytest.importorskip("torch")
cv2 = pytest.importorskip("cv2")
np = pytest.importorskip("numpy")

from devicecore.cv import catalog  # noqa: E402
from tests.cv.differential import compare, image  # noqa: E402 - it imports torch

TYPES = ["uint8", "int8", "uint16", "int16", "int32", "float16", "float32", "float64"]
sizes = st.tuples(st.integers(1, 30), st.integers(1, 30))


@pytest.mark.parametrize("dtype", TYPES)
@given(sizes, st.integers(0, 6))
def test_split(dtype: str, size: tuple[int, int], channels: int) -> None:
    assert compare("split", image(*size, channels, dtype)) == "exact"


@pytest.mark.parametrize("dtype", TYPES)
@given(sizes, st.lists(st.integers(0, 4), min_size=1, max_size=5))
def test_merge(dtype: str, size: tuple[int, int], channels: list[int]) -> None:
    images = [image(*size, count, dtype, seed) for seed, count in enumerate(channels)]
    assert compare("merge", images) == "exact"
    assert compare("merge", tuple(images)) == "exact"


@pytest.mark.parametrize("dtype", TYPES)
@given(sizes, st.integers(1, 6), st.data())
def test_extract_and_insert(
    dtype: str, size: tuple[int, int], channels: int, data: st.DataObject
) -> None:
    picture = image(*size, channels, dtype)
    place = data.draw(st.integers(0, channels - 1))
    assert compare("extractChannel", picture, place) == "exact"
    promise = compare("insertChannel", image(*size, 0, dtype, 1), picture, place)
    assert promise == ("host" if channels == 1 else "exact")


def test_results_are_memory_of_their_own() -> None:
    picture = torch.zeros(4, 5, 1, dtype=torch.uint8)
    for name, args in (
        ("split", (picture,)),
        ("merge", ([picture],)),
        ("extractChannel", (picture, 0)),
    ):
        operation = catalog.find(name, "torch")
        assert operation is not None
        found = operation.run(None, *args)
        one = found[0] if isinstance(found, tuple) else found
        one += 1
        assert not picture.any()


@pytest.mark.parametrize(
    ("name", "args"),
    [
        ("split", (image(4, 5), [image(4, 5, 0)] * 3)),
        ("split", (image(4, 5, 3, "int64"),)),
        ("split", (image(0, 5),)),
        ("merge", (image(4, 5, 3),)),
        ("merge", ([],)),
        ("merge", ([image(4, 5, 0), image(4, 6, 0)],)),
        ("merge", ([image(4, 5, 0), image(4, 5, 0, "int8")],)),
        ("merge", ([image(4, 5, 64)] * 3,)),
        ("extractChannel", (image(4, 5), 3)),
        ("extractChannel", (image(4, 5), -1)),
        ("extractChannel", (image(4, 5), 1.0)),
        ("extractChannel", (image(4, 5), True)),
        ("insertChannel", (image(4, 5, 2), image(4, 5), 0)),
        ("insertChannel", (image(4, 6, 0), image(4, 5), 0)),
        ("insertChannel", (image(4, 5, 0, "int8"), image(4, 5), 0)),
        ("insertChannel", (image(4, 5, 0), image(4, 5), 3)),
    ],
)
def test_calls_for_opencv_to_judge(name: str, args: tuple[Any, ...]) -> None:
    assert compare(name, *args) == "host"
