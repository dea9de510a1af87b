"""Filters of `cv2` on tensors, against OpenCV."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

pytest.importorskip("torch")
cv2 = pytest.importorskip("cv2")

from devicecore.cv.environment import environment  # noqa: E402 - it imports cv2
from tests.cv.differential import compare, image, photo  # noqa: E402 - it imports torch

BORDERS = [cv2.BORDER_CONSTANT, cv2.BORDER_REPLICATE, cv2.BORDER_REFLECT, cv2.BORDER_REFLECT_101]
DEPTHS = {
    "uint8": [-1, cv2.CV_16U, cv2.CV_16S, cv2.CV_32F],
    "uint16": [-1, cv2.CV_32F],
    "int16": [-1, cv2.CV_32F],
    "float32": [-1],
}
sizes = st.integers(1, 40)
channels = st.sampled_from([0, 1, 2, 3, 4, 5])
lengths = st.integers(1, 7)
seeds = st.integers(0, 1000)
deltas = st.sampled_from([0, 3, -7, 0.5, 128])
in_floats = pytest.mark.skipif(
    environment().version != (5, 0) or not environment().is_x86,
    reason="float kernels were compared with OpenCV 5.0 on x86",
)


def whole_kernel(height: int, width: int, seed: int, bits: int = 0) -> Any:
    return image(height, width, 0, "uint8", seed).astype(np.float32) % 9 / (1 << bits) - 4


@pytest.mark.parametrize("border", BORDERS)
@pytest.mark.parametrize("dtype", ["uint8", "uint16", "int16"])
@given(sizes, sizes, channels, lengths, lengths, seeds, deltas, st.integers(0, 2), st.data())
def test_whole_kernels(
    border: int,
    dtype: str,
    height: int,
    width: int,
    count: int,
    high: int,
    wide: int,
    seed: int,
    delta: float,
    bits: int,
    data: Any,
) -> None:
    picture = image(height, width, count, dtype, seed)
    kernel = whole_kernel(high, wide, seed, bits)
    depth = data.draw(st.sampled_from(DEPTHS[dtype]))
    anchor = data.draw(st.sampled_from([(-1, -1), (0, high - 1), (wide - 1, -1)]))
    promise = compare("filter2D", picture, depth, kernel, None, anchor, delta, border)
    if kernel.size < 50 and kernel.any() and environment().version == (5, 0):
        assert promise == "exact"


@in_floats
@pytest.mark.parametrize("dtype", DEPTHS)
@given(sizes, sizes, channels, lengths, lengths, seeds, deltas, st.data())
def test_float_kernels(
    dtype: str,
    height: int,
    width: int,
    count: int,
    high: int,
    wide: int,
    seed: int,
    delta: float,
    data: Any,
) -> None:
    picture = image(height, width, count, dtype, seed)
    kernel = np.random.default_rng(seed).normal(0, 0.3, (high, wide))
    depth = data.draw(st.sampled_from(DEPTHS[dtype]))
    assert compare("filter2D", picture, depth, kernel, delta=delta) == "exact"


@pytest.mark.long
@in_floats
@pytest.mark.parametrize("dtype", ["uint8", "uint16", "float32"])
def test_float_kernels_on_a_photo(dtype: str) -> None:
    factor = {"uint8": 1, "uint16": 257, "float32": 1 / 255}[dtype]
    picture = (photo()[100:164] * np.float64(factor)).astype(dtype)
    chance = np.random.default_rng(7)
    for size in ((3, 3), (5, 4), (7, 7), (1, 9)):
        kernel = chance.random(size, np.float32)
        for weights in (kernel / kernel.sum(), kernel - 0.4):
            assert compare("filter2D", picture[:, 7:310], -1, weights) == "exact"


smooth = st.sampled_from([[1], [0.25, 0.5, 0.25], [0.0625, 0.25, 0.375, 0.25, 0.0625], [0.5, 0.5]])
slopes = st.lists(st.integers(-3, 3), min_size=1, max_size=6).filter(any)


@pytest.mark.parametrize("border", BORDERS)
@pytest.mark.parametrize("dtype", ["uint8", "uint16", "int16"])
@given(sizes, sizes, channels, smooth | slopes, smooth | slopes, deltas, seeds, st.data())
def test_separable_kernels(
    border: int,
    dtype: str,
    height: int,
    width: int,
    count: int,
    across: list[float],
    down: list[float],
    delta: float,
    seed: int,
    data: Any,
) -> None:
    picture = image(height, width, count, dtype, seed)
    kernels = np.array(across, np.float32), np.array(down, np.float32)
    depth = data.draw(st.sampled_from(DEPTHS[dtype]))
    named: dict[str, Any] = {"delta": delta, "borderType": border}
    promise = compare("sepFilter2D", picture, depth, *kernels, **named)
    assert promise == "exact" or dtype != "uint8" or delta == 0.5


@in_floats
@pytest.mark.parametrize("border", BORDERS)
@given(sizes, sizes, channels, lengths, lengths, st.floats(0.4, 4), deltas)
def test_bells(
    border: int,
    height: int,
    width: int,
    count: int,
    wide: int,
    high: int,
    sigma: float,
    delta: float,
) -> None:
    picture = image(height, width, count)
    across, down = (cv2.getGaussianKernel(2 * half + 1, sigma) for half in (wide, high))
    named: dict[str, Any] = {"delta": delta, "borderType": border}
    assert compare("sepFilter2D", picture, -1, across, down, **named) == "exact"
    # Whatever is rounded away counts here.
    dull, amplified = picture % 16 + 120, (across * 300).astype(np.float32)
    # Whole numbers of 256ths, a rare draw, are computed in integers, and left to OpenCV there.
    assume((amplified * 256 % 1).any())
    one = np.ones(1, np.float32)
    named["delta"] = -300 * 127.5 + 128
    assert compare("sepFilter2D", dull, -1, amplified, one, **named) == "exact"
    assert compare("sepFilter2D", dull, -1, one, amplified, **named) == "exact"


@given(
    sizes, sizes, channels, st.integers(0, 7), st.integers(0, 7), st.sampled_from(BORDERS), seeds
)
def test_symmetrical_kernels_for_numbers(
    height: int, width: int, count: int, wide: int, high: int, border: int, seed: int
) -> None:
    chance = np.random.default_rng(seed)
    picture = image(height, width, count, "float32", seed) * np.float32(300)
    across, down = (
        np.concatenate([half, [0.5], half[::-1]]) if len(half) else np.ones(1)
        for half in (chance.uniform(0.01, 0.9, size) for size in (wide, high))
    )
    expected = "exact" if cv2.__version__ >= "5" else "host"
    for dtype in (np.float32, np.float64):
        kernels = across.astype(dtype), down.astype(dtype)
        found = compare("sepFilter2D", picture, -1, *kernels, borderType=border)
        assert found == expected
    assert compare("sepFilter2D", picture, -1, across, down, delta=1) == "host"
    asked = compare("sepFilter2D", picture, -1, across, np.array([0.1, 0.5, 0.2]))
    assert asked == "host"


@pytest.mark.long
@in_floats
def test_bells_on_a_photo() -> None:
    for size, sigma in ((3, 0.8), (5, 1.1), (7, 2.3), (13, 3.0)):
        kernel = cv2.getGaussianKernel(size, sigma, cv2.CV_32F)
        for part in (photo(), photo()[100:300, 7:310]):
            assert compare("sepFilter2D", part, -1, kernel, kernel) == "exact"


@pytest.mark.parametrize("border", BORDERS)
@pytest.mark.parametrize("dtype", ["uint8", "uint16", "int16"])
@given(sizes, sizes, channels, st.sampled_from([1.0, 0.5, 2.0, 1 / 3]), deltas, st.data())
def test_derivatives(
    border: int,
    dtype: str,
    height: int,
    width: int,
    count: int,
    scale: float,
    delta: float,
    data: Any,
) -> None:
    picture = image(height, width, count, dtype)
    depth = data.draw(st.sampled_from(DEPTHS[dtype]))
    named: dict[str, Any] = {"scale": scale, "delta": delta, "borderType": border}
    is_whole = dtype == "uint8" and scale != 1 / 3 and delta != 0.5
    exact = {"exact"} if is_whole else {"exact", "host"}
    for order in ((1, 0), (0, 1)):
        assert compare("Scharr", picture, depth, *order, **named) in exact
    for size in (1, 3, 5):
        for order in ((1, 0), (0, 1), (1, 1), (2, 0)):
            if max(order) < max(size, 3):
                assert compare("Sobel", picture, depth, *order, ksize=size, **named) in exact
    for size in (1, 3):
        compare("Laplacian", picture, depth, ksize=size, **named)


def test_derivatives_of_a_photo() -> None:
    for depth in (cv2.CV_8U, cv2.CV_16S, cv2.CV_32F):
        for size in (3, 5, 7):
            assert compare("Sobel", photo(), depth, 1, 0, ksize=size) == "exact"
            assert compare("Sobel", photo()[3:430, 7:], depth, 0, 1, ksize=size) == "exact"
        assert compare("Scharr", photo(), depth, 0, 1) == "exact"
        assert compare("Laplacian", photo(), depth) == "exact"
        assert compare("Laplacian", photo(), depth, ksize=3) == "exact"


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("filter2D", (-1, np.ones((13, 13), np.float32))),
        ("filter2D", (-1, np.zeros((3, 3), np.float32))),
        ("filter2D", (-1, np.ones((3, 3), np.uint8))),
        ("filter2D", (-1, [[1.0]])),
        ("filter2D", (-1, np.ones((3, 3), np.float32), None, (3, 0))),
        ("filter2D", (-1, np.ones((3, 3), np.float32), None, (-1, -1), 0, cv2.BORDER_WRAP)),
        ("filter2D", (cv2.CV_64F, np.ones((3, 3), np.float32))),
        ("sepFilter2D", (-1, np.ones((3, 3), np.float32), np.ones(3, np.float32))),
        ("sepFilter2D", (-1, np.ones(3), np.ones(3, np.float32))),
        ("sepFilter2D", (-1, np.array([0.1, 0.3]), np.ones(3))),
        ("Sobel", (cv2.CV_16S, 0, 0)),
        ("Sobel", (cv2.CV_16S, 1, 0, None, 4)),
        ("Scharr", (cv2.CV_16S, 1, 1)),
        ("Laplacian", (cv2.CV_16S, None, 5)),
    ],
)
def test_calls_for_opencv_to_judge(name: str, arguments: tuple[Any, ...]) -> None:
    assert compare(name, image(9, 20), *arguments) == "host"
    assert compare(name, image(0, 20), *arguments) == "host"
