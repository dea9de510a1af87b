"""Arithmetic, comparisons and bits of `cv2` on tensors, against OpenCV."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

torch = pytest.importorskip("torch")
cv2 = pytest.importorskip("cv2")

from devicecore import cv  # noqa: E402 - like the others
from devicecore.cv import catalog  # noqa: E402 - it imports torch
from devicecore.errors import NoKernelError  # noqa: E402 - like the others
from tests.cv.differential import compare, image, photo  # noqa: E402 - it imports torch

TYPES = ["uint8", "int8", "uint16", "int16", "float32"]
PLAIN = ["add", "subtract", "absdiff", "multiply", "divide", "min", "max"]
BITS = ["bitwise_and", "bitwise_or", "bitwise_xor"]
COMPARISONS = [cv2.CMP_EQ, cv2.CMP_GT, cv2.CMP_GE, cv2.CMP_LT, cv2.CMP_LE, cv2.CMP_NE]
sizes = st.integers(1, 40)
channels = st.sampled_from([0, 1, 2, 3, 4, 5])
scales = st.floats(-300, 300, width=32) | st.sampled_from([1.0, 1 / 255, 0.37, 2.0, 1e-4, 1 / 3])
numbers = st.integers(-300, 70000) | st.floats(-300, 70000, width=32)
since_5 = pytest.mark.skipif(cv2.__version__ < "5", reason="OpenCV 4 takes numbers otherwise")


def pair(height: int, width: int, channels: int, dtype: str) -> tuple[Any, Any]:
    """Return two images, in one of which there are zeros and pixels of the other one."""
    first, second = (image(height, width, channels, dtype, seed) for seed in (1, 2))
    if dtype == "float32":
        first, second = first * 300 - 150, second * 300 - 150
    second[::3, ::2] = 0
    second[1::3] = first[1::3]
    return first, second


def fills_vectors(picture: Any) -> bool:
    return bool(picture[0].size >= 16)


@pytest.mark.parametrize("name", PLAIN)
@pytest.mark.parametrize("dtype", TYPES)
@given(sizes, sizes, channels)
def test_two_images(name: str, dtype: str, height: int, width: int, count: int) -> None:
    assert compare(name, *pair(height, width, count, dtype)) == "exact"


@pytest.mark.parametrize("name", BITS)
@pytest.mark.parametrize("dtype", [*TYPES, "int32"])
@given(sizes, sizes, channels)
def test_bits(name: str, dtype: str, height: int, width: int, count: int) -> None:
    first, second = pair(height, width, count, dtype)
    assert compare(name, first, second) == "exact"
    if dtype != "float32":  # of which some bits are no numbers
        assert compare("bitwise_not", first) == "exact"


@since_5
@pytest.mark.parametrize("name", [*PLAIN, *BITS])
@pytest.mark.parametrize("dtype", TYPES)
@given(sizes, st.integers(0, 4), st.tuples(numbers, numbers, numbers, numbers))
def test_numbers(name: str, dtype: str, size: int, count: int, values: tuple[float, ...]) -> None:
    picture, _ = pair(size, 17, count, dtype)
    expected = "host" if name in BITS and dtype == "float32" else "exact"
    for value in (values[0], values, *([values[:count]] if count > 1 else [])):
        assert compare(name, picture, value) == expected


@pytest.mark.parametrize("name", ["add", "subtract", "multiply", "divide"])
@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("target", [2, 3, 4, 5, 6])
def test_results_of_other_types(name: str, dtype: str, target: int) -> None:
    first, second = pair(33, 47, 3, dtype)
    compare(name, first, second, dtype=target)
    compare(name, first, 10.5, dtype=target)
    compare(name, first, (10.5, -20.25, 300, 0), dtype=target)


@pytest.mark.parametrize("name", ["add", "subtract"])
@pytest.mark.parametrize("target", [0, 2, 3, 5])
def test_operands_of_several_types(name: str, target: int) -> None:
    for other in ("uint16", "int16", "int8"):
        second = image(20, 21, 3, other)
        assert compare(name, image(20, 21), second, dtype=target) == "exact"


@pytest.mark.parametrize("name", ["multiply", "divide"])
@pytest.mark.parametrize("dtype", TYPES)
@given(sizes, sizes, channels, scales)
def test_scales(name: str, dtype: str, height: int, width: int, count: int, scale: float) -> None:
    first, second = pair(height, width, count, dtype)
    promise = compare(name, first, second, scale=scale)
    is_regular = name == "divide" or scale == 1 or fills_vectors(first)
    assert promise == ("exact" if is_regular else "host")
    compare(name, first, second, scale=scale, dtype=5)
    if count <= 4 < height * width:
        compare(name, first, 10.5, scale=scale)


@pytest.mark.parametrize("dtype", TYPES)
@given(sizes, sizes, channels, scales, scales, scales)
def test_weighted_sums(
    dtype: str, height: int, width: int, count: int, alpha: float, beta: float, gamma: float
) -> None:
    first, second = pair(height, width, count, dtype)
    expected = "exact" if fills_vectors(first) else "host"
    assert compare("addWeighted", first, alpha, second, beta, gamma) == expected
    assert compare("convertScaleAbs", first, alpha=alpha, beta=gamma) == expected


def test_a_weighted_photo() -> None:
    for dtype, factor in (("uint8", 1), ("uint16", 257), ("float32", 1 / 255)):
        first = (photo().astype(np.float32) * factor).astype(dtype)
        second = np.ascontiguousarray(first[::-1])
        for weights in ((0.7, 0.3, 0.0), (1 / 3, 2 / 3, 0.1), (1.5, -0.5, 10.5)):
            alpha, beta, gamma = weights
            assert compare("addWeighted", first, alpha, second, beta, gamma) == "exact"


@pytest.mark.parametrize("comparison", COMPARISONS)
@pytest.mark.parametrize("dtype", TYPES)
@given(sizes, sizes, channels, numbers)
def test_comparisons(
    comparison: int, dtype: str, height: int, width: int, count: int, value: float
) -> None:
    first, second = pair(height, width, count, dtype)
    assert compare("compare", first, second, comparison) == "exact"
    if count <= 4 < height * width and cv2.__version__ >= "5":
        assert compare("compare", first, value, comparison) == "exact"


@pytest.mark.parametrize("dtype", TYPES)
@given(sizes, sizes, st.integers(0, 4), st.tuples(*[numbers] * 4), st.tuples(*[numbers] * 4))
def test_ranges(
    dtype: str, height: int, width: int, count: int, low: tuple[float, ...], high: tuple[float, ...]
) -> None:
    first, second = pair(height, width, count, dtype)
    assert compare("inRange", first, first, second) == "exact"
    if height * width > 4 and cv2.__version__ >= "5":
        assert compare("inRange", first, low, high) == "exact"
        assert compare("inRange", first, low[0], high[0]) == "exact"


ALL_PAIRS = np.arange(1 << 16, dtype=np.uint16).view(np.uint8).reshape(256, 256, 2)


@pytest.mark.parametrize("name", [*PLAIN, *BITS])
def test_all_pairs_of_bytes(name: str) -> None:
    first, second = (np.ascontiguousarray(ALL_PAIRS[..., place]) for place in (0, 1))
    assert compare(name, first, second) == "exact"
    if name in {"multiply", "divide"}:
        for scale in (1 / 255, 255, 0.37, 1e-4):
            assert compare(name, first, second, scale=scale) == "exact"


@pytest.mark.parametrize(
    "arguments",
    [
        (image(9, 20), [1, 2, 3, 4]),
        (image(9, 20), (1, 2)),
        (image(9, 20), np.array([1.0, 2, 3, 4])),
        (image(9, 20), image(9, 19)),
        (image(9, 20), float("nan")),
        (image(9, 20), "ab"),
        (image(9, 20), None),
        (image(9, 20), image(9, 20, dtype="uint16")),
        (image(0, 20), image(0, 20)),
    ],
)
def test_calls_for_opencv_to_judge(arguments: tuple[Any, ...]) -> None:
    for name in ("add", "multiply", "absdiff", "max", "bitwise_and"):
        assert compare(name, *arguments) == "host"


@pytest.mark.parametrize("name", ["add", "subtract", *BITS])
@pytest.mark.parametrize("dtype", TYPES)
@given(sizes, sizes, st.integers(0, 4), st.integers(0, 3))
def test_masks(name: str, dtype: str, height: int, width: int, count: int, rare: int) -> None:
    first, second = pair(height, width, count, dtype)
    mask = image(height, width, 0, seed=3) >> (5 + rare)
    is_small = height * width <= 4
    expected = "host" if name in BITS and is_small else "exact"
    assert compare(name, first, second, mask=mask) == expected
    assert compare(name, first, second, None, mask[..., None]) == expected
    if cv2.__version__ >= "5":
        assert compare(name, first, second, mask=mask > 0) == expected
    expected = "host" if is_small else "exact"
    assert compare("bitwise_not", first, mask=mask.view(np.int8)) == expected
    if height * width > 4:
        found = compare(name, first, (3.0, 4, 5, 6), mask=mask)
        assert found == ("host" if name in BITS and dtype == "float32" else "exact")


def test_masks_for_opencv_to_judge() -> None:
    first, second = pair(9, 20, 3, "uint8")
    for name in ("add", "subtract", *BITS):
        mask = image(9, 20, 0)
        assert compare(name, first, second, first.copy(), mask) == "host"
        for refused in (first, mask[1:], mask.astype(np.uint16)):
            operation = catalog.find(name, "torch")
            assert operation is not None
            assert operation.plan((first, second), {"mask": refused}) is None


def test_masks_and_found_thresholds_are_not_for_triton() -> None:
    pytest.importorskip("triton")
    first, second = pair(9, 20, 1, "uint8")
    mask = image(9, 20, 0)
    calls: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = [
        (name, (first, second), {"mask": mask}) for name in ("add", *BITS)
    ]
    calls.append(("bitwise_not", (first,), {"mask": mask}))
    calls.append(("threshold", (first, 0, 255, cv2.THRESH_OTSU), {}))
    for name, args, kwargs in calls:
        operation = catalog.find(name, "triton")
        assert operation is not None
        assert operation.plan(args, kwargs) is None


@pytest.mark.parametrize("size", [(1, 5), (2, 3), (5, 9), (4, 10), (12, 10)])
@pytest.mark.parametrize("dtype", ["uint8", "int16", "float32", "float64"])
@pytest.mark.parametrize("kind", [np.asarray, torch.from_numpy])
def test_not_with_a_mask_and_more_channels_than_pixels(
    size: tuple[int, int], dtype: str, kind: Any
) -> None:
    pixels = size[0] * size[1]
    for channels in (pixels, pixels + 1, 127):
        picture = image(*size, channels, dtype)
        mask = image(*size, 0) & 1
        try:
            expected = cv2.bitwise_not(picture, mask=mask)
        except cv2.error:
            assert channels > pixels
            with cv.using("torch"), pytest.raises((cv2.error, NoKernelError)):
                cv.bitwise_not(kind(picture), mask=kind(mask))
        else:
            found = cv.bitwise_not(kind(picture), mask=kind(mask))
            assert np.asarray(found).tobytes() == expected.tobytes()
