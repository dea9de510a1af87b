"""What is given for the result: beside the operands, one of them, or a part of one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

torch = pytest.importorskip("torch")
cv2 = pytest.importorskip("cv2")

from devicecore import cv, default_ledger  # noqa: E402 - like the others
from devicecore.cv import catalog  # noqa: E402 - it imports torch
from devicecore.cv.environment import environment  # noqa: E402 - it imports cv2
from tests.cv.differential import IS_OLD, image  # noqa: E402 - it imports torch

sizes = st.tuples(st.integers(1, 5), st.integers(16, 90))
TYPES = ["uint8", "int8", "uint16", "int16", "float32"]


def cancelling(
    size: tuple[int, int], dtype: str, seed: int
) -> tuple[Any, Any, tuple[float, float, float]]:
    """Return two images and weights with which each way of adding up rounds in its own way."""
    first, second = image(*size, 0, dtype, seed), image(*size, 0, dtype, seed + 1)
    high = 1.0 if dtype == "float32" else float(np.iinfo(dtype).max)
    middle = second.dtype.type(high * 0.7)
    second[:, ::3] = middle
    weight = 3e6 / high
    return first, second, (0.37, weight, -weight * float(middle))


@pytest.mark.skipif(IS_OLD or not environment().has_fma, reason="it is left to OpenCV")
@given(sizes, st.sampled_from(TYPES), st.booleans(), st.booleans(), st.integers(0, 99))
def test_weighted_sums_in_the_place_of_an_operand(
    size: tuple[int, int], dtype: str, is_second: bool, is_view: bool, seed: int
) -> None:
    first, second, (alpha, beta, gamma) = cancelling(size, dtype, seed)

    def result(module: Any) -> Any:
        pair = [each.copy() for each in (first, second)]
        if is_view:
            pair = [np.pad(each, 3)[3:-3, 3:-3] for each in pair]
        place = pair[is_second]
        found = module.addWeighted(pair[0], alpha, pair[1], beta, gamma, dst=place)
        assert found is place
        return found

    expected = result(cv2)
    with cv.using("torch"):
        found = result(cv)
    assert np.array_equal(found, expected)


@pytest.mark.skipif(IS_OLD, reason="it is left to OpenCV")
def test_that_is_another_result_than_beside_them() -> None:
    first, second, (alpha, beta, gamma) = cancelling((3, 30), "float32", 0)
    beside = cv2.addWeighted(first, alpha, second, beta, gamma)
    place = np.zeros_like(first)
    with cv.using("torch"):
        assert cv.addWeighted(first, alpha, second, beta, gamma, place) is place
        assert np.array_equal(place, beside)
        cv.addWeighted(first, alpha, second, beta, gamma, first)
    assert not np.array_equal(first, beside)


def test_a_place_that_overlaps_is_for_opencv() -> None:
    operation = catalog.find("flip", "torch")
    assert operation is not None
    both = image(20, 30)
    assert operation.plan((both[:10], 1, both[5:15]), {}) is None
    assert operation.plan((both[:10], 1, both[10:]), {}) is not None
    tensor = torch.from_numpy(both)
    assert operation.plan((tensor[:10], 1, tensor[5:15]), {}) is None
    assert operation.plan((tensor[:10], 1, tensor[10:]), {}) is not None


@pytest.mark.parametrize("label", ["native", "torch"])
def test_a_place_may_have_an_axis_for_one_channel(label: Any) -> None:
    numbers = image(9, 20, 1, "float32")
    for place in (np.zeros((9, 20, 1), np.float32), np.zeros((9, 20), np.float32)):
        with cv.using(label):
            assert cv.add(numbers, numbers, dst=place) is place
        assert np.array_equal(place.reshape(9, 20, 1), numbers * 2)


def test_a_number_may_come_first() -> None:
    numbers = image(9, 20, 3, "float32")
    default_ledger().clear()
    with cv.using("native"):
        found = cv.subtract(1, torch.from_numpy(numbers))
    assert np.array_equal(found.numpy(), cv2.subtract(1, numbers))
    assert np.array_equal(cv.subtract(1, numbers), cv2.subtract(1, numbers))


@pytest.mark.skipif(IS_OLD, reason="OpenCV 4 computes its warps")
def test_infinite_places_of_a_perspective_have_no_number() -> None:
    numbers = image(100, 100, 3, "float32")
    matrix = np.array([(0.2, 0, 0), (-4 / 15, -0.4, 24), (-1 / 150, -0.02, 1)])
    expected = cv2.warpPerspective(numbers, matrix, (100, 100))
    flags = cv2.INTER_LINEAR | cv2.WARP_INVERSE_MAP
    inverse = np.array([(1.0, 0, 3), (0, 1, 0), (0.125, 0.25, -8)])
    for args in ((matrix, (100, 100)), (inverse, (60, 40), None, flags)):
        expected = cv2.warpPerspective(numbers, *args)
        with cv.using("torch"):
            assert np.array_equal(cv.warpPerspective(numbers, *args), expected, equal_nan=True)
    assert np.isnan(expected).any()


def places(name: str, dtype: Any) -> tuple[Any, ...]:
    def new(*shape: int) -> Any:
        return np.zeros(shape, dtype)

    plane = new(9, 20)
    return {
        "integral": (new(10, 21, 3),),
        "flip": (1, new(9, 20, 3)),
        "split": ([plane, new(9, 20), new(9, 20)],),
        "meanStdDev": (new(3, 1), np.zeros((3, 1))),
        "GaussianBlur": ((3, 3), 0, new(9, 20, 3)),
    }[name]


@pytest.mark.parametrize("name", ["integral", "flip", "split", "meanStdDev", "GaussianBlur"])
@pytest.mark.parametrize("dtype", ["bool", "uint32", "int64", "uint64", "complex64", "O", "f4,f4"])
def test_places_of_types_that_opencv_does_not_write(name: str, dtype: str) -> None:
    picture = image(9, 20)
    try:
        getattr(cv2, name)(picture, *places(name, dtype))
        is_taken = True
    except cv2.error:
        is_taken = False
    operation = catalog.find(name, "torch")
    assert operation is not None
    why_not = operation.why_not((picture, *places(name, dtype)), {})
    assert is_taken == ("which OpenCV does not write" not in why_not), why_not
    if not is_taken:
        with cv.using("torch"), pytest.raises(cv2.error):
            getattr(cv, name)(picture, *places(name, dtype))


def test_a_place_that_is_a_tensor_of_such_a_type() -> None:
    operation = catalog.find("flip", "torch")
    assert operation is not None
    tensor = torch.from_numpy(image(9, 20))
    for dtype in (torch.int64, torch.complex64, torch.bfloat16):
        assert "does not write" in operation.why_not((tensor, 1, tensor.to(dtype)), {})
    assert "does not write" not in operation.why_not((tensor, 1, tensor.float()), {})
