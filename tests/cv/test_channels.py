"""Functions of channels, such as `cv2.split` and `merge`, on tensors, against OpenCV."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

torch = pytest.importorskip("torch")
cv2 = pytest.importorskip("cv2")
np = pytest.importorskip("numpy")

from devicecore import cv  # noqa: E402
from devicecore.cv import catalog  # noqa: E402
from devicecore.errors import NoKernelError  # noqa: E402
from tests.cv.differential import compare, image  # noqa: E402 - it imports torch

if TYPE_CHECKING:
    from collections.abc import Callable

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


@pytest.mark.parametrize("dtype", TYPES)
@given(
    sizes,
    st.lists(st.integers(0, 4), min_size=1, max_size=3),
    # Planes with an axis for their channel come back without it, and go into their place with it.
    st.lists(st.sampled_from([0, 2, 3, 4]), min_size=1, max_size=3),
    st.data(),
)
def test_mix(
    dtype: str, size: tuple[int, int], read: list[int], written: list[int], data: st.DataObject
) -> None:
    sources = [image(*size, count, dtype, seed) for seed, count in enumerate(read)]
    targets = [image(*size, count, dtype, 9 + seed) for seed, count in enumerate(written)]
    source = st.integers(-2, sum(max(count, 1) for count in read) - 1)
    target = st.integers(0, sum(max(count, 1) for count in written) - 1)
    steps = data.draw(st.lists(st.tuples(source, target), min_size=1, max_size=6))
    numbers = [number for step in steps for number in step]
    assert compare("mixChannels", sources, targets, numbers) == "exact"


def test_mix_writes_where_opencv_does() -> None:
    sources, targets = (
        [image(4, 5), image(4, 5, 0)],
        [image(4, 5, 2), image(4, 5, 1), image(4, 5, 0)],
    )
    steps = [0, 1, 3, 0, -1, 2, 1, 3]
    tensors = [torch.from_numpy(each.copy()) for each in targets]
    with cv.using("torch"):
        found = cv.mixChannels([torch.from_numpy(each) for each in sources], tensors, steps)
    cv2.mixChannels(sources, targets, steps)
    for result, tensor, expected in zip(found, tensors, targets, strict=True):
        assert result is tensor
        np.testing.assert_array_equal(result.numpy(), expected)


@pytest.mark.parametrize("device", ["array", "tensor"])
def test_mix_in_place(device: str) -> None:
    picture = image(4, 5)
    expected = picture.copy()
    cv2.mixChannels([expected], [expected], [0, 1, 1, 0])
    own = picture if device == "array" else torch.from_numpy(picture)
    assert compare("mixChannels", [picture], [picture], [0, 1, 1, 0]) == "host"
    cv.mixChannels([own], [own], [0, 1, 1, 0])
    np.testing.assert_array_equal(picture, expected)


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
        ("mixChannels", (image(4, 5), image(4, 5), [0, 0])),
        ("mixChannels", ([image(4, 5)], [image(4, 6)], [0, 0])),
        ("mixChannels", ([image(4, 5)], [image(4, 5, 3, "int8")], [0, 0])),
        ("mixChannels", ([image(4, 5)], [image(4, 5)], [3, 0])),
        ("mixChannels", ([image(4, 5)], [image(4, 5)], [0, -1])),
        ("mixChannels", ([image(4, 5)], [image(4, 5)], [0])),
        ("mixChannels", ([image(4, 5)], [image(4, 5)], [])),
    ],
)
def test_calls_for_opencv_to_judge(name: str, args: tuple[Any, ...]) -> None:
    assert compare(name, *args) == "host"


def columns(shape: tuple[int, ...]) -> Any:
    return np.zeros((shape[0], shape[1] * 2, *shape[2:]), np.uint8)[:, ::2]


def read_only(shape: tuple[int, ...]) -> Any:
    return np.broadcast_to(np.uint8(0), shape)


LAYOUTS: dict[str, Callable[[tuple[int, ...]], Any]] = {
    "columns": columns,
    "upside down": lambda shape: np.zeros(shape, np.uint8)[::-1],
    "backwards": lambda shape: np.zeros(shape, np.uint8)[..., ::-1],
    "columns first": lambda shape: np.zeros(shape, np.uint8, order="F"),
    "some channels": lambda shape: np.zeros((*shape[:-1], shape[-1] + 2), np.uint8)[..., :-2],
    "read only": read_only,
    "some rows": lambda shape: np.zeros((shape[0] * 2, *shape[1:]), np.uint8)[::2],
    "a part": lambda shape: np.zeros((shape[0], shape[1] + 9, *shape[2:]), np.uint8)[:, 3:-6],
}


@pytest.mark.parametrize("label", [None, "torch", "native"])
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", ["insertChannel", "mixChannels"])
def test_layouts_that_are_written_into(name: str, layout: str, label: Any) -> None:
    def call(module: Any) -> Any:
        place, plane = LAYOUTS[layout]((4, 10, 3)), np.full((4, 10), 9, np.uint8)
        args = (plane, place, 1) if name == "insertChannel" else ([plane], [place], [0, 1])
        try:
            getattr(module, name)(*args)
        except (cv2.error, NoKernelError):
            return place.copy(), "refused"
        return place.copy(), "written"

    place, expected = call(cv2)
    with cv.using(label) if label else cv.accept("exact"):
        found, answer = call(cv)
    assert answer == expected
    assert np.array_equal(found, place)
    assert answer == ("written" if layout in {"some rows", "a part"} else "refused")


def test_why_a_layout_is_not_written_into() -> None:
    operation = catalog.find("mixChannels", "torch")
    assert operation is not None
    args = ([np.zeros((4, 10), np.uint8)], [columns((4, 10, 3))], [0, 1])
    assert operation.why_not(args, {}) == "dst: OpenCV does not write there"
