"""Kernels on devices without float64, which the fakes of `device_limits` stand for."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from attrs import evolve
from hypothesis import given, settings
from hypothesis import strategies as st

torch = pytest.importorskip("torch")
cv2 = pytest.importorskip("cv2")

from devicecore import cv  # noqa: E402 - like the others
from devicecore.cv import catalog  # noqa: E402 - it imports torch
from devicecore.cv.device_types import missing_types  # noqa: E402 - like it
from devicecore.cv.kernel_choice import choose  # noqa: E402 - it imports torch
from devicecore.cv.policy import DEFAULT  # noqa: E402 - like the others
from devicecore.cv.self_test import run_self_test  # noqa: E402 - it imports torch
from devicecore.device import Device  # noqa: E402 - like the others
from devicecore.errors import (  # noqa: E402 - like the others
    DeviceError,
    DeviceGoneError,
    RefusedCallError,
)
from devicecore.kernels.exactness import PROMISES, Exactness, is_within  # noqa: E402 - like the others
from tests.cv.device_limits import MPS, XPU, Limits, Refusing  # noqa: E402 - it imports torch
from tests.cv.differential import IS_OLD, compare, image  # noqa: E402 - like it

LIMITS = [pytest.param(each, id=each.device_type) for each in (MPS, XPU)]
NAME = re.compile(r"`(\w+)`")
# Functions that compute nothing there, or nothing that is at least within tolerance, and why.
SET_ASIDE: dict[str, str] = {}


def promises_of(name: str, device: Any) -> list[Exactness]:
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
        assert run_self_test(operation, device) == ""
        found = promises_of(name, device)
    good = any(is_within(each, "tolerance") for each in found)
    if IS_OLD and not good:
        pytest.skip("OpenCV 4 answers it itself")
    assert good == (name not in SET_ASIDE)


INTEGERS = st.sampled_from(["uint8", "int8", "uint16", "int16"])
TYPES = st.sampled_from(["uint8", "int8", "uint16", "int16", "float32"])
sizes = st.tuples(st.integers(4, 40), st.integers(8, 40))
seeds = st.integers(0, 999)
# Each example compares several calls.
few = settings(max_examples=15)
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


@few
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


@few
@given(sizes, INTEGERS, seeds, st.integers(0, 12), st.sampled_from([2, 3, 5]), scales)
def test_products_and_quotients_of_another_type(
    size: tuple[int, int], dtype: str, seed: int, shift: int, depth: int, scale: float
) -> None:
    picture = image(*size, 3, dtype, seed)
    other = image(*size, 3, dtype, seed + 1) >> shift
    for name in ("multiply", "divide"):
        assert check(name, picture, other, dtype=depth) in {"exact", "host"}
        assert check(name, picture, other, scale=scale) in {"exact", "host"}


@few
@given(sizes, TYPES, seeds, numbers, numbers, numbers)
def test_weighted_sums(
    size: tuple[int, int], dtype: str, seed: int, alpha: float, beta: float, gamma: float
) -> None:
    first, second = (scattered(size, 3, dtype, seed + more) for more in (0, 1))
    assert check("addWeighted", first, alpha, second, beta, gamma) in {"exact", "host"}
    assert check("convertScaleAbs", first, alpha=alpha, beta=gamma) in {"exact", "host"}


@few
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


@few
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
@few
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


@few
@given(sizes, seeds)
def test_colours(size: tuple[int, int], seed: int) -> None:
    picture = image(*size, 3, "uint8", seed)
    for code in ("BGR2HSV", "HSV2BGR", "BGR2HLS", "HLS2BGR_FULL", "HSV2RGB_FULL"):
        assert check("cvtColor", picture, getattr(cv2, f"COLOR_{code}")) in {
            "exact",
            "lsb1",
            "host",
        }


@few
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


@few
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


@few
@given(st.integers(1, 20), seeds)
def test_points_in_perspective(count: int, seed: int) -> None:
    chance = np.random.default_rng(seed)
    points = chance.normal(0, 50, (count, 1, 2)).astype(np.float32)
    matrix = np.eye(3) + chance.normal(0, 1e-3, (3, 3))
    assert check("perspectiveTransform", points, matrix) == "tolerance"


@few
@given(sizes, seeds, numbers, st.integers(0, 4))
def test_thresholds(size: tuple[int, int], seed: int, level: float, kind: int) -> None:
    for dtype in ("uint8", "int16", "float32"):
        picture = image(*size, 3, dtype, seed)
        is_single = dtype != "float32" or level == float(np.float32(level))
        promise = "exact" if is_single else "tolerance"
        assert check("threshold", picture, level, 77.0, kind) == promise


@pytest.mark.parametrize("limits", LIMITS)
def test_a_call_by_name(limits: Limits) -> None:
    picture = image(9, 20)
    with Refusing(limits):
        tensor = torch.from_numpy(picture)
        level, found = limits.device().compute("cv2.threshold", tensor, 100, 255, 0)
    assert (level.item(), level.dtype) == (100.0, torch.float32)
    assert np.array_equal(found.numpy(), cv2.threshold(picture, 100, 255, 0)[1])


@pytest.mark.parametrize("limits", LIMITS)
@pytest.mark.parametrize(
    ("name", "args"),
    [
        ("add", (np.zeros((5, 6)), np.zeros((5, 6)))),
        ("LUT", (np.zeros((5, 6), np.uint8), np.zeros(256))),
        ("integral", (np.zeros((5, 6), np.uint8), None, cv2.CV_64F)),
        ("flip", (np.zeros((5, 6)), 1)),
    ],
)
def test_what_needs_float64_is_refused_with_the_reason(
    limits: Limits, name: str, args: tuple[Any, ...]
) -> None:
    if name == "add":
        args = (*(each.astype(np.uint8) for each in args), None, None, cv2.CV_64F)
    with Refusing(limits), pytest.raises(RefusedCallError) as info:
        choose(name, limits.device(), DEFAULT, args, {})
    assert info.value.refused == {
        "torch": "it needs float64 for these arguments, and the device has none"
    }


@pytest.mark.parametrize("limits", LIMITS)
def test_what_is_less_exact_there_is_declared(limits: Limits) -> None:
    picture = image(9, 20)
    policy = evolve(DEFAULT, accepted="tolerance")
    with Refusing(limits):
        device = limits.device()
        with pytest.raises(RefusedCallError, match="only tolerance"):
            choose("mean", device, DEFAULT, (picture,), {})
        assert choose("mean", device, policy, (picture,), {}).plan.promise == "tolerance"
    operation = catalog.find("mean", "torch")
    assert operation is not None
    plan = operation.plan((picture,), {})
    assert plan is not None
    assert plan.promise == "exact"


@pytest.mark.parametrize("limits", LIMITS)
def test_types_are_tried_on_the_device(limits: Limits) -> None:
    with Refusing(limits):
        found = missing_types(limits.device())
    names = {str(dtype).removeprefix("torch.") for dtype in limits.dtypes}
    assert found == names - {"complex128"}
    assert missing_types(limits.device()) == frozenset()  # another device, outside of the fake


def test_a_device_that_fails_says_nothing_about_its_types() -> None:
    class Failing(Device):
        def device_error(self, error: Exception) -> DeviceError | None:
            return DeviceGoneError(self.name, str(error))

    device = Failing("/device:XPU:0", device_class="GPU", torch_device="cpu")
    with Refusing(XPU), pytest.raises(DeviceGoneError):
        missing_types(device)
    assert missing_types(device) == frozenset()


@pytest.mark.skipif(IS_OLD, reason="OpenCV 4 answers some of them itself")
def test_the_page_names_what_is_less_exact() -> None:
    page = (Path(__file__).parents[2] / "docs/reference/cv.md").read_text(encoding="utf-8")
    table = page.partition("<!-- without float64 -->")[2].partition("<!-- end without")[0]
    named = {
        name
        for row in table.splitlines()
        for name in NAME.findall(row.partition("|")[2].partition("|")[0])
    }
    found = set()
    with Refusing(XPU):
        device = XPU.device()
        for name in catalog.TORCH:
            operation = catalog.find(name, "torch")
            assert operation is not None
            for args, kwargs in operation.examples():
                if "float64" in {str(each.dtype) for each in operation.images_in(args, kwargs)}:
                    continue
                plans = [operation.plan(args, kwargs, each) for each in (device, None)]
                if len({None if plan is None else plan.promise for plan in plans}) > 1:
                    found.add(name)
    # The examples have none of the calls of these that change.
    assert named == found | {"matchTemplate", "threshold"}


@pytest.mark.parametrize("limits", LIMITS)
@pytest.mark.parametrize("name", sorted(catalog.KORNIA))
def test_kernels_of_kornia(name: str, limits: Limits) -> None:
    pytest.importorskip("kornia")
    operation = catalog.find(name, "kornia")
    assert operation is not None
    device = limits.device()
    with Refusing(limits):
        assert run_self_test(operation, device) == ""
        assert any(operation.plan(*each, device) is not None for each in operation.examples())


@pytest.mark.parametrize("limits", LIMITS)
def test_the_input_of_a_network(limits: Limits) -> None:
    pictures = torch.from_numpy(image(37, 53))
    for mode in ("stretch", "letterbox"):
        expected = cv.preprocess(pictures, 32, mode=mode, blur=3, mean=0.5, std=0.25)
        with Refusing(limits):
            found = cv.preprocess(pictures, 32, mode=mode, blur=3, mean=0.5, std=0.25)
        assert torch.equal(found, expected)
