"""Kernels on devices without float64, which the fakes of `device_limits` stand for."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

torch = pytest.importorskip("torch")
cv2 = pytest.importorskip("cv2")

from devicecore.cv import catalog  # noqa: E402 - like the others
from devicecore.cv.plan import PROMISES  # noqa: E402 - like the others
from devicecore.cv.quarantine import tested  # noqa: E402 - it imports torch
from tests.cv.device_limits import MPS, XPU, Limits, Refusing  # noqa: E402 - it imports torch
from tests.cv.differential import IS_OLD, compare, image  # noqa: E402 - like it

LIMITS = [pytest.param(each, id=each.device_type) for each in (MPS, XPU)]
# Functions that compute nothing there, or nothing that is at least within tolerance, and why.
SET_ASIDE: dict[str, str] = {}


def promises_of(name: str, device: Any) -> list[str]:
    """Return what is promised of each of a function's examples that *device* computes."""
    operation = catalog.find(name, "torch")
    assert operation is not None
    plans = [operation.plan(args, kwargs, device) for args, kwargs in operation.examples()]
    return [plan.promise for plan in plans if plan is not None]


@pytest.mark.parametrize("limits", LIMITS)
@pytest.mark.parametrize("name", sorted(catalog.TORCH))
def test_each_function_keeps_its_promises(name: str, limits: Limits) -> None:
    operation = catalog.find(name, "torch")
    assert operation is not None
    device = limits.device()
    with Refusing(limits):
        assert tested(operation, device) == ""
        found = promises_of(name, device)
    good = [each for each in found if PROMISES.index(each) <= PROMISES.index("tolerance")]
    assert bool(good) == (name not in SET_ASIDE)


INTEGERS = st.sampled_from(["uint8", "int8", "uint16", "int16"])
TYPES = st.sampled_from(["uint8", "int8", "uint16", "int16", "float32"])
sizes = st.tuples(st.integers(4, 40), st.integers(8, 40))
seeds = st.integers(0, 999)
numbers = st.sampled_from([0.0, 1.0, 0.5, 3.0, 0.1, -20.25, 300.0, 1 / 3, 1e-3])
scales = st.sampled_from([1.0, 0.37, 255.0, 1 / 255])


def check(name: str, *args: Any, **kwargs: Any) -> str:
    """Compare a call with OpenCV on a device that has no float64."""
    return compare(name, *args, limits=XPU, **kwargs)


def scattered(size: tuple[int, int], channels: int, dtype: str, seed: int) -> Any:
    """Return an image; one of floats has values of many magnitudes, and of both signs."""
    found = image(*size, channels, dtype, seed)
    if dtype != "float32":
        return found
    chance = np.random.default_rng(seed)
    return ((found - 0.5) * 10.0 ** chance.integers(-9, 9, found.shape)).astype(np.float32)


@given(sizes, TYPES, seeds, numbers, numbers, scales)
def test_arithmetic_with_numbers(
    size: tuple[int, int], dtype: str, seed: int, first: float, second: float, scale: float
) -> None:
    picture = scattered(size, 3, dtype, seed)
    for value in (first, (first, second, 7.0, 0.0)):
        for name in ("add", "subtract"):
            check(name, picture, value)
            check(name, picture, value, dtype=cv2.CV_32F)
        check("absdiff", picture, value)
        for name in ("multiply", "divide"):
            found = check(name, picture, value, scale=scale)
            assert found in (("exact", "tolerance") if dtype == "float32" else ("exact",))
    for comparison in range(6):
        assert check("compare", picture, second, comparison) == "exact"


@given(sizes, INTEGERS, seeds, st.integers(0, 12), st.sampled_from([2, 3, 5]), scales)
def test_products_and_quotients_of_another_type(
    size: tuple[int, int], dtype: str, seed: int, shift: int, depth: int, scale: float
) -> None:
    picture = image(*size, 3, dtype, seed)
    other = image(*size, 3, dtype, seed + 1) >> shift
    for name in ("multiply", "divide"):
        assert check(name, picture, other, dtype=depth) in {"exact", "host"}
        assert check(name, picture, other, scale=scale) in {"exact", "host"}


@given(sizes, TYPES, seeds, numbers, numbers, numbers)
def test_weighted_sums(
    size: tuple[int, int], dtype: str, seed: int, alpha: float, beta: float, gamma: float
) -> None:
    first, second = (scattered(size, 3, dtype, seed + more) for more in (0, 1))
    assert check("addWeighted", first, alpha, second, beta, gamma) in {"exact", "host"}
    assert check("convertScaleAbs", first, alpha=alpha, beta=gamma) in {"exact", "host"}


@given(sizes, st.sampled_from(["uint8", "uint16", "int16"]), seeds, st.integers(0, 14), st.data())
def test_means_of_windows(
    size: tuple[int, int], dtype: str, seed: int, shift: int, data: st.DataObject
) -> None:
    # Few values make means that lie in the middle of two integers.
    picture = image(*size, 3, dtype, seed) >> shift
    window = data.draw(st.tuples(st.integers(1, 24), st.integers(1, 24)))
    assert check("blur", picture, window) in {"exact", "host"}
    assert check("boxFilter", picture, cv2.CV_32F, window) in {"exact", "tolerance", "host"}
    plane = image(*size, 1, "uint8", seed) >> (shift // 2)
    assert check("reduce", plane, seed % 2, cv2.REDUCE_AVG, dtype=cv2.CV_32S) == "exact"


@given(sizes, seeds, st.sampled_from([(3, 3), (5, 5), (7, 9), (1, 3)]))
def test_sums_of_floats(size: tuple[int, int], seed: int, window: tuple[int, int]) -> None:
    picture = scattered(size, 3, "float32", seed)
    assert check("GaussianBlur", picture, window, 1.3) in {"exact", "host"}
    assert check("blur", picture, window) == "tolerance"
    kernel = np.random.default_rng(seed).normal(0, 1, (3, 3))
    for dtype in ("uint8", "float32"):
        picture = scattered(size, 3, dtype, seed)
        assert check("filter2D", picture, -1, kernel) in {"exact", "host"}
        assert check("transform", picture, kernel) in {"exact", "lsb1", "tolerance", "host"}


@pytest.mark.skipif(IS_OLD, reason="OpenCV 4 computes its warps")
@given(
    sizes,
    st.sampled_from(["uint8", "uint16", "float32"]),
    seeds,
    st.sampled_from([cv2.INTER_LINEAR, cv2.INTER_CUBIC]),
)
def test_warps(size: tuple[int, int], dtype: str, seed: int, flag: int) -> None:
    picture = image(*size, 3, dtype, seed)
    chance = np.random.default_rng(seed)
    matrix = np.eye(3) + chance.normal(0, 0.2, (3, 3)) * [(1, 1, 9), (1, 1, 9), (0.01, 0.01, 0.1)]
    border = {"flags": flag, "borderMode": cv2.BORDER_REFLECT_101}
    assert check("warpAffine", picture, matrix[:2], (33, 21), **border) in {"exact", "host"}
    assert check("warpPerspective", picture, matrix, (33, 21), **border) in {"exact", "host"}


@given(sizes, seeds)
def test_colours(size: tuple[int, int], seed: int) -> None:
    picture = image(*size, 3, "uint8", seed)
    for code in ("BGR2HSV", "HSV2BGR", "BGR2HLS", "HLS2BGR_FULL", "HSV2RGB_FULL"):
        assert check("cvtColor", picture, getattr(cv2, f"COLOR_{code}")) in {
            "exact",
            "lsb1",
            "host",
        }


@given(sizes, TYPES, seeds, st.integers(0, 6), st.sampled_from([-1, 0, 2, 3, 5]))
def test_stretched_ranges(
    size: tuple[int, int], dtype: str, seed: int, shift: int, depth: int
) -> None:
    picture = scattered(size, 3, dtype, seed)
    picture = picture >> shift if dtype != "float32" else picture
    for low, high in ((0, 255), (1, 0.5), (-3, 70.1)):
        found = check("normalize", picture, None, low, high, cv2.NORM_MINMAX, depth)
        assert found in (("exact", "host") if dtype in {"uint8", "int8"} else PROMISES[:3]) or (
            found == "host"
        )


@given(sizes, TYPES, seeds, st.integers(0, 9))
def test_reductions(size: tuple[int, int], dtype: str, seed: int, rare: int) -> None:
    picture = image(*size, 3, dtype, seed)
    mask = image(*size, 0, seed=seed) >> rare
    for each in (None, mask):
        assert check("mean", picture, each) == "tolerance"
        assert check("meanStdDev", picture, mask=each) in {"tolerance", "host"}
        check("minMaxLoc", picture[..., 0].copy(), each)
        for kind in (cv2.NORM_INF, cv2.NORM_L1, cv2.NORM_L2):
            check("norm", picture, image(*size, 3, dtype, seed + 1), kind, each)
    check("sumElems", picture)
    if dtype == "float32":
        assert check("sqrt", np.abs(scattered(size, 3, dtype, seed))) == "exact"


@given(st.integers(1, 20), seeds)
def test_points_in_perspective(count: int, seed: int) -> None:
    chance = np.random.default_rng(seed)
    points = chance.normal(0, 50, (count, 1, 2)).astype(np.float32)
    matrix = np.eye(3) + chance.normal(0, 1e-3, (3, 3))
    assert check("perspectiveTransform", points, matrix) == "tolerance"


@given(sizes, seeds, numbers, st.integers(0, 4))
def test_thresholds(size: tuple[int, int], seed: int, level: float, kind: int) -> None:
    for dtype in ("uint8", "int16", "float32"):
        picture = image(*size, 3, dtype, seed)
        is_single = dtype != "float32" or level == float(np.float32(level))
        promise = "exact" if is_single else "tolerance"
        assert check("threshold", picture, level, 77.0, kind) == promise
