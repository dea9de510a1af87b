"""`cv2.warpAffine`, `warpPerspective` and `remap` on tensors, against OpenCV."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

pytest.importorskip("torch")
cv2 = pytest.importorskip("cv2")

from devicecore.cv.arguments import constant  # noqa: E402 - beside what imports cv2
from devicecore.cv.environment import environment  # noqa: E402 - it imports cv2
from tests.cv.differential import compare, image, photo  # noqa: E402 - it imports torch

if TYPE_CHECKING:
    from collections.abc import Iterator

# OpenCV 4 and other processors have other arithmetic.
IS_KNOWN = environment().has_float_warps and environment().is_x86
EXACT = "exact" if IS_KNOWN else "host"
BORDERS = ("CONSTANT", "REPLICATE", "REFLECT", "REFLECT_101", "WRAP")
FLAGS = ("NEAREST", "LINEAR", "AREA", "CUBIC")
LEAST_AREA = 1e-4
TYPES = ("uint8", "uint16", "float32")
sizes = st.integers(1, 40)
# INTER_CUBIC with BORDER_REFLECT_101 never ends on an image of one row or column.
sources = st.tuples(st.integers(2, 40), st.integers(2, 40), st.sampled_from([0, 1, 3, 4]))

factors = st.floats(-3, 3).filter(lambda x: abs(x) > 0.05) | st.sampled_from([0.5, 1.0, -1.0, 2.0])
places = st.floats(-60, 60) | st.integers(-9, 9)
values = st.just(0) | st.tuples(*[st.integers(-9, 70000)] * 4) | st.floats(0, 300)


@pytest.fixture(params=[True, False], ids=["fused", "unfused"])
def arithmetic(request: pytest.FixtureRequest) -> Iterator[None]:
    was = cv2.useOptimized()
    cv2.setUseOptimized(request.param)
    yield
    cv2.setUseOptimized(was)


def affine(a: float, b: float, c: float, d: float, e: float, f: float) -> Any:
    return np.array([(a, b, c), (d, e, f)], np.float64)


def has_known_border(picture: Any, flag: str, border: str, value: Any) -> bool:
    """Return whether a constant border has a value of which each bit is known."""
    if (picture.dtype, flag, border) != (np.float32, "CUBIC", "CONSTANT"):
        return True
    return not any(constant(value, picture.shape[2] if picture.ndim == 3 else 1, "float32"))


@pytest.mark.usefixtures("arithmetic")
@pytest.mark.parametrize("border", BORDERS)
@given(
    st.sampled_from(FLAGS),
    st.sampled_from(TYPES),
    sources,
    st.tuples(sizes, sizes),
    st.builds(affine, factors, st.floats(-1, 1), places, st.floats(-1, 1), factors, places),
    st.sampled_from([0, cv2.WARP_INVERSE_MAP]),
    values,
)
def test_affine(
    border: str,
    flag: str,
    dtype: str,
    shape: tuple[int, int, int],
    size: tuple[int, int],
    matrix: Any,
    inverse: int,
    value: Any,
) -> None:
    # Nearly without an inverse, its places are beyond all numbers; see below.
    assume(inverse or not 0 < abs(np.linalg.det(matrix[:, :2])) < LEAST_AREA)
    flags = getattr(cv2, f"INTER_{flag}") | inverse
    kind = getattr(cv2, f"BORDER_{border}")
    picture = image(*shape, dtype)
    arguments = {"flags": flags, "borderMode": kind, "borderValue": value}
    expected = EXACT if has_known_border(picture, flag, border, value) else "host"
    assert compare("warpAffine", picture, matrix, size, **arguments) == expected
    single = matrix.astype(np.float32)
    assert compare("warpAffine", picture, single, None, **arguments) == expected


@pytest.mark.usefixtures("arithmetic")
@pytest.mark.parametrize("border", BORDERS)
@given(
    st.sampled_from(FLAGS),
    st.sampled_from(TYPES),
    sources,
    st.tuples(sizes, sizes),
    st.builds(affine, factors, st.floats(-1, 1), places, st.floats(-1, 1), factors, places),
    st.tuples(st.floats(-0.01, 0.01), st.floats(-0.01, 0.01)),
    values,
)
def test_perspective(
    border: str,
    flag: str,
    dtype: str,
    shape: tuple[int, int, int],
    size: tuple[int, int],
    matrix: Any,
    slopes: tuple[float, float],
    value: Any,
) -> None:
    whole = np.vstack([matrix, (*slopes, 1)])
    arguments = {"borderMode": getattr(cv2, f"BORDER_{border}"), "borderValue": value}
    picture, flags = image(*shape, dtype), getattr(cv2, f"INTER_{flag}")
    for each in (flags, flags | cv2.WARP_INVERSE_MAP):
        found = compare("warpPerspective", picture, whole, size, flags=each, **arguments)
        assert found in {EXACT, "host"}  # a horizon may be in the image


@pytest.mark.usefixtures("arithmetic")
@pytest.mark.parametrize("border", BORDERS)
@given(
    st.sampled_from(FLAGS),
    st.sampled_from(TYPES),
    sources,
    st.tuples(sizes, sizes),
    st.sampled_from([0.25, 0.5, 1, 0]),
    st.booleans(),
    st.integers(0, 99),
    values,
)
def test_remap(
    border: str,
    flag: str,
    dtype: str,
    shape: tuple[int, int, int],
    size: tuple[int, int],
    step: float,
    is_relative: bool,
    seed: int,
    value: Any,
) -> None:
    maps = np.random.default_rng(seed).uniform(-90, 130, (*size, 2)).astype(np.float32)
    if step:
        maps = (maps / step).round() * np.float32(step)
    flags = getattr(cv2, f"INTER_{flag}")
    relative = getattr(cv2, "WARP_RELATIVE_MAP", 0) if is_relative else 0  # new in 4.10
    arguments = {"borderMode": getattr(cv2, f"BORDER_{border}"), "borderValue": value}
    across, down = maps[..., 0].copy(), maps[..., 1].copy()
    picture = image(*shape, dtype)
    expected = EXACT if has_known_border(picture, flag, border, value) else "host"
    assert compare("remap", picture, across, down, flags | relative, **arguments) == expected
    assert compare("remap", picture, maps, None, flags | relative, **arguments) == expected


@pytest.mark.usefixtures("arithmetic")
@pytest.mark.parametrize("border", ["CONSTANT", "REFLECT_101"])
@pytest.mark.parametrize("flag", ["NEAREST", "LINEAR", "CUBIC"])
@pytest.mark.parametrize("dtype", TYPES)
def test_a_photo(flag: str, border: str, dtype: str) -> None:
    factor = {"uint8": 1, "uint16": 257, "float32": 1 / 255}[dtype]
    picture = (photo()[100:230, 107:400] * np.float32(factor)).astype(dtype)
    arguments = {
        "flags": getattr(cv2, f"INTER_{flag}"),
        "borderMode": getattr(cv2, f"BORDER_{border}"),
    }
    turned = cv2.getRotationMatrix2D((100, 40), 7, 1.05)
    corners = np.array([(0, 0), (290, 9), (280, 120), (20, 130)], np.float32)
    moved = np.array([(9, 7), (150, -20), (135, 120), (-10, 140)], np.float32)
    seen = cv2.getPerspectiveTransform(corners, moved)
    rows, columns = np.mgrid[:101, :217].astype(np.float32)
    across, down = columns + 5 * np.sin(rows / 17), rows * 1.5 + 5 * np.cos(columns / 19)
    assert compare("warpAffine", picture, turned, (217, 91), **arguments) == EXACT
    assert compare("warpPerspective", picture, seen, (141, 130), **arguments) == EXACT
    interpolation = arguments.pop("flags")
    assert compare("remap", picture, across, down, interpolation, **arguments) == EXACT


def test_views_and_batches_of_images() -> None:
    from devicecore.cv import catalog

    matrix = affine(0.8, -0.3, 9, 0.2, 1.1, -7)
    picture = photo()[::-2, 5:200, ::-1]
    assert compare("warpAffine", picture, matrix, (99, 77)) == EXACT
    if IS_KNOWN:
        import torch

        batch = torch.from_numpy(np.stack([image(20, 30, 3, seed=seed) for seed in range(3)]))
        maps = torch.from_numpy(np.random.default_rng(2).uniform(-5, 35, (3, 9, 8, 2)))
        operation = catalog.find("remap", "torch")
        assert operation is not None
        for places in (maps.float(), maps[:1].float().expand(3, -1, -1, -1), maps[0].float()):
            found = operation.run(None, batch, places, None, cv2.INTER_LINEAR)
            for index in range(3):
                own = places if places.ndim == 3 else places[index]
                expected = cv2.remap(batch[index].numpy(), own.numpy(), None, cv2.INTER_LINEAR)
                assert np.array_equal(found[index].numpy(), expected)


@pytest.mark.parametrize("flag", ["NEAREST", "LINEAR"])
@pytest.mark.parametrize("border", BORDERS)
@pytest.mark.parametrize("shape", [(1, 1), (1, 9), (9, 1), (1, 2)])
def test_images_of_one_row_or_column(shape: tuple[int, int], border: str, flag: str) -> None:
    arguments = {"borderMode": getattr(cv2, f"BORDER_{border}")}
    number = getattr(cv2, f"INTER_{flag}")
    for channels in (0, 3):
        picture = image(*shape, channels)
        assert compare("warpAffine", picture, TURN, (21, 9), flags=number, **arguments) == EXACT
        assert (
            compare("warpPerspective", picture, SEEN, (21, 9), flags=number, **arguments) == EXACT
        )
        maps = np.random.default_rng(3).uniform(-20, 20, (9, 21, 2)).astype(np.float32)
        assert compare("remap", picture, maps, None, number, **arguments) == EXACT


SOME = image(9, 11)
TURN = affine(1, 0.5, 2, 0.1, 1, 3)
SEEN = np.vstack([TURN, (0.001, 0.002, 1)])


@pytest.mark.parametrize(
    ("picture", "arguments"),
    [
        (image(9, 11, 2), {}),
        (image(9, 11, 5), {}),
        (image(9, 11, 3, "int16"), {}),
        (image(9, 11, 3, "float64"), {}),
        (np.zeros((0, 5, 3), np.uint8), {}),
        (image(9, 11, 3, "float32"), {"flags": cv2.INTER_CUBIC, "borderValue": 0.5}),
        (SOME, {"flags": cv2.INTER_LANCZOS4}),
        (SOME, {"flags": True}),
        (SOME, {"borderMode": cv2.BORDER_TRANSPARENT}),
        (SOME, {"borderMode": cv2.BORDER_REFLECT | cv2.BORDER_ISOLATED}),
        (SOME, {"borderValue": "red"}),
        (SOME, {"borderValue": (1, 2, 3, 4, 5)}),
        (SOME, {"hint": 2}),
    ],
)
def test_calls_for_opencv_to_judge(picture: Any, arguments: Any) -> None:
    assert compare("warpAffine", picture, TURN, (9, 7), **arguments) == "host"
    assert compare("warpPerspective", picture, SEEN, (9, 7), **arguments) == "host"
    maps = np.zeros((3, 4, 2), np.float32)
    flags = arguments.pop("flags", cv2.INTER_LINEAR)
    assert compare("remap", picture, maps, None, flags, **arguments) == "host"


@pytest.mark.parametrize(
    ("matrix", "size"),
    [
        (TURN.tolist(), (9, 7)),
        (TURN.astype(np.int32), (9, 7)),
        (SEEN, (9, 7)),
        (TURN * np.nan, (9, 7)),
        (TURN, (9.0, 7)),
        (TURN, (0, 7)),
        (TURN, (9,)),
        (TURN, (40000, 7)),
    ],
)
def test_matrices_and_sizes_for_opencv_to_judge(matrix: Any, size: Any) -> None:
    assert compare("warpAffine", SOME, matrix, size) == "host"


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (np.zeros((3, 4), np.float32), None),
        (np.zeros((3, 4), np.float32), np.zeros((4, 3), np.float32)),
        (np.zeros((3, 4, 2), np.float32), np.zeros((3, 4), np.float32)),
        (np.zeros((3, 4), np.float64), np.zeros((3, 4), np.float64)),
        (np.zeros((3, 4, 2), np.int16), None),
    ],
)
def test_maps_for_opencv_to_judge(first: Any, second: Any) -> None:
    assert compare("remap", SOME, first, second, cv2.INTER_LINEAR) == "host"


HORIZON = np.array([(1, 0, 0), (0, 1, 0), (0.25, 0, -1)], np.float64)
FAR = affine(1, 0, 1e12, 0, 1, 0)


@pytest.mark.parametrize("size", [(33, 9), (7, 9)])
@pytest.mark.parametrize("flag", [cv2.INTER_NEAREST, cv2.INTER_LINEAR])
def test_places_beyond_all_numbers(flag: int, size: tuple[int, int]) -> None:
    inverse = flag | cv2.WARP_INVERSE_MAP
    for name, matrix in (("warpAffine", FAR), ("warpPerspective", HORIZON)):
        for picture in (image(9, 40), image(9, 40, 0, "uint16")):
            assert compare(name, picture, matrix, size, flags=inverse) == EXACT
            # Here OpenCV's answer depends on the place in the row.
            for border in (cv2.BORDER_REFLECT, cv2.BORDER_REPLICATE, cv2.BORDER_WRAP):
                found = compare(name, picture, matrix, size, flags=inverse, borderMode=border)
                assert found == "host"
            found = compare(name, picture, matrix, size, flags=inverse, borderValue=7)
            assert found == (EXACT if flag == cv2.INTER_NEAREST else "host")


def test_a_matrix_without_an_inverse() -> None:
    flat = affine(1, 2, 3, 2, 4, 5)
    for border in (cv2.BORDER_CONSTANT, cv2.BORDER_REPLICATE):
        assert compare("warpAffine", SOME, flat, (20, 7), borderMode=border) == EXACT
    lost = np.vstack([flat, (0, 0, 1)])
    assert compare("warpPerspective", SOME, lost, (20, 7)) == EXACT
    assert compare("warpPerspective", SOME, lost, (20, 7), borderMode=cv2.BORDER_WRAP) == "host"
