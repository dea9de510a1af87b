"""Triton's kernels of neighbourhoods in its interpreter: random small images against OpenCV."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")
pytest.importorskip("cv2")
pytest.importorskip("triton")

from tests.cv.test_triton import interpreted  # it imports torch

# Each prints a line for each call that a kernel answers; all of them are compared.
COMMON = """
import cv2, numpy as np, torch
from devicecore.cv.triton_support import strips
from tests.cv.differential import compare
torch.cuda.current_device = lambda: None  # as the index of the host
strips.BLOCK, strips.ROWS, strips.TALL = 32, 4, 1
chance = np.random.default_rng(7)

def images(count):
    for index in range(count):
        channels = 1 + index % 4
        width = int(chance.integers(1, 20)) if index % 2 else 4 * int(chance.integers(5, 16))
        shape = (int(chance.integers(1, 11)), width, channels)
        yield chance.integers(0, 256, shape, np.uint8)

def check(name, *args, **kwargs):
    promise = compare(name, *args, label="triton", **kwargs)
    assert promise in ("exact", "host"), promise
    if promise == "exact":
        print(name)
"""
MORPHOLOGY = """
line = np.array([[0, 0, 1]], np.uint8)
for image in images(4):
    for kernel in (None, np.ones((2, 5), np.uint8), cv2.getStructuringElement(1, (3, 3))):
        check("erode", image, kernel)
        check("dilate", image, kernel, borderType=cv2.BORDER_REPLICATE)
    check("dilate", image, np.ones((3, 2), np.uint8), anchor=(0, 2), iterations=2)
    check("erode", image, line, anchor=(0, 0), borderType=cv2.BORDER_REPLICATE)
    # A border that is left out is no pixel of this element.
    assert compare("erode", image, line, anchor=(0, 0), label="triton") == "host"
    check("morphologyEx", image, cv2.MORPH_TOPHAT, None)
"""


@pytest.mark.long
def test_morphology() -> None:
    assert interpreted(COMMON + MORPHOLOGY).count("erode") == 16


MEDIANS = """
from devicecore.cv.ops.median import triton as median_triton
median_triton.HIGH.update({3: 4, 5: 4})
strips.BLOCK = 128
"""


@pytest.mark.long
def test_medians() -> None:
    code = """
for image in images(5):
    check("medianBlur", image, 3)
for image in images(4):
    check("medianBlur", image, 5)
"""
    assert len(interpreted(COMMON + MEDIANS + code)) == 9


@pytest.mark.long
def test_medians_of_all_squares_of_two_values() -> None:
    # Exchanges that order all values of two kinds order all others too. Each row of a square has
    # every number of the greater ones, in any order; squares begin at each row in turn.
    code = """
strips.BLOCK = 1 << 15
for size in (3, 5):
    counts = np.indices((size + 1,) * size).reshape(size, -1, 1)
    rows = chance.permuted(np.arange(size) < counts, axis=2).reshape(size, -1)
    image = np.where(np.tile(rows, (2, 1)), 200, 100).astype(np.uint8)
    check("medianBlur", image, size)
"""
    assert len(interpreted(COMMON + MEDIANS + code)) == 2


@pytest.mark.long
def test_boxes() -> None:
    code = """
for image in images(4):
    for border in (cv2.BORDER_REFLECT_101, cv2.BORDER_REPLICATE, cv2.BORDER_REFLECT):
        check("blur", image, (3, 3), borderType=border)
    check("boxFilter", image, -1, (4, 5), anchor=(0, 3))
check("blur", np.full((12, 60), 255, np.uint8), (9, 16))
"""
    found = interpreted(COMMON + code)
    assert found.count("blur") >= 9
    assert "boxFilter" in found


@pytest.mark.long
def test_filters() -> None:
    code = """
sharper = np.array([[0, -1, 0], [-1, 5, -1], [0, -1, 0]], np.float32)
for image in images(2):
    for depth in (-1, cv2.CV_16S):
        check("filter2D", image, depth, sharper / 8, delta=3)
        check("filter2D", image, depth, chance.integers(-9, 9, (3, 2)).astype(float))
        check("Sobel", image, depth, 1, 0)
        check("Sobel", image, depth, 1, 1, ksize=5, borderType=cv2.BORDER_REFLECT)
        check("Scharr", image, depth, 0, 1, delta=-7)
        check("Laplacian", image, depth, borderType=cv2.BORDER_REPLICATE)
        check("Laplacian", image, depth, ksize=3, scale=0.25)
        check("sepFilter2D", image, depth, np.array([-1.0, 0, 3]), np.array([1.0, 2, -2]))
    assert compare("Sobel", image, cv2.CV_32F, 1, 0, label="triton") == "host"
"""
    found = interpreted(COMMON + code)
    for name in ("filter2D", "Sobel", "Scharr", "Laplacian", "sepFilter2D"):
        assert found.count(name) >= 2, name


@pytest.mark.long
def test_gaussian_blurs() -> None:
    code = """
from devicecore.cv.ops.gaussian_blur import triton as gaussian_blur_triton
gaussian_blur_triton.BLOCK, gaussian_blur_triton.ROWS = 32, 4
check("GaussianBlur", chance.integers(0, 256, (12, 48, 3), np.uint8), (11, 5), 2.5)  # in one pass
check("GaussianBlur", chance.integers(0, 256, (12, 72), np.uint8), (9, 11), 1.8)
for image in images(4):
    for border in (cv2.BORDER_REFLECT_101, cv2.BORDER_REPLICATE, cv2.BORDER_REFLECT):
        check("GaussianBlur", image, (5, 3), 0, borderType=border)
    check("GaussianBlur", image, (9, 7), 1.9)
check("GaussianBlur", np.full((16, 90), 255, np.uint8), (31, 29), 5)
check("GaussianBlur", chance.integers(0, 256, (20, 40, 3), np.uint8), (0, 0), 2.2)
"""
    assert len(interpreted(COMMON + code)) >= 10


@pytest.mark.long
def test_pyramids() -> None:
    code = """
from devicecore.cv.ops.pyramid import triton as pyramid_triton
pyramid_triton.BLOCK, pyramid_triton.ROWS = 32, 2
for channels in (1, 2, 3, 4):
    for shape in ((6, 56), (15, 40)):
        image = chance.integers(0, 256, (*shape, channels), np.uint8)
        check("pyrDown", image, borderType=cv2.BORDER_REFLECT)
for image in images(6):
    for border in (cv2.BORDER_REFLECT_101, cv2.BORDER_REPLICATE, cv2.BORDER_REFLECT):
        check("pyrDown", image, borderType=border)
check("pyrDown", np.full((5, 361, 3), 255, np.uint8))
check("pyrDown", chance.integers(0, 256, (19, 1100), np.uint8))  # with programs that see no border
check("pyrDown", chance.integers(0, 256, (9, 500, 3), np.uint8))
"""
    assert len(interpreted(COMMON + code)) >= 17
