"""`cv2.GaussianBlur`, `blur`, `boxFilter` and `medianBlur` on tensors of torch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import cv2
import numpy as np
import torch

from devicecore.cv.environment import environment
from devicecore.cv.operation import operation
from devicecore.cv.ops.boxes import box_plan
from devicecore.cv.ops.float_gaussian import float_weights, gaussian_blur
from devicecore.cv.ops.fusing import multiply_add
from devicecore.cv.ops.windows import FILTER_BORDERS, Window, pair, weighted, window
from devicecore.cv.plan import Plan
from devicecore.cv.tables.gaussian import automatic_size, fixed_weights

if TYPE_CHECKING:
    from collections.abc import Iterator

    from devicecore.cv.image import Image

    Tensor = torch.Tensor

_APPROXIMATE = 2  # what OpenCV calls ALGO_HINT_APPROX
_GAUSSIAN_TYPES = frozenset({"uint8", "uint16", "float32"})
_MEDIAN_TYPES = frozenset({"uint8", "uint16", "int16", "float32"})
# Larger windows of medians are for bytes, and of so many channels.
_SMALL_MEDIAN = 5
_MEDIAN_CHANNELS = frozenset({1, 3, 4})
_LARGEST_MEDIAN = 31


def _images() -> Iterator[Any]:
    chance = np.random.default_rng(3)
    for dtype in (np.uint8, np.uint16, np.int16):
        limits = np.iinfo(dtype)
        yield chance.integers(limits.min, limits.max, (13, 19, 3), dtype, endpoint=True)


def gaussian_examples() -> Iterator[tuple[tuple[Any, ...], dict[str, Any]]]:
    """Yield small calls of every kind of ``cv2.GaussianBlur``."""
    for image in _images():
        for size, sigma in (((3, 3), 0), ((5, 9), 0), ((7, 7), 1.3), ((0, 0), 1.7), ((11, 1), 0)):
            for border in sorted(FILTER_BORDERS):
                yield (image, size, sigma), {"borderType": border}
    for width in (18, 19):
        image = np.random.default_rng(5).random((13, width, 3), np.float32)
        for size in ((3, 3), (5, 5), (7, 9), (1, 3)):
            yield (image, size, 1.3), {}


def box_examples() -> Iterator[tuple[tuple[Any, ...], dict[str, Any]]]:
    """Yield small calls of every kind of ``cv2.blur``."""
    for image in (*_images(), np.random.default_rng(6).random((13, 19, 3), np.float32)):
        for size in ((3, 3), (4, 2), (8, 8), (17, 16)):
            for border in sorted(FILTER_BORDERS):
                yield (image, size), {"borderType": border}


def typed_box_examples() -> Iterator[tuple[tuple[Any, ...], dict[str, Any]]]:
    """Yield small calls of every kind of ``cv2.boxFilter``."""
    for (image, size), named in box_examples():
        for depth in (-1, cv2.CV_32F):
            for normalize in (True, False):
                yield (image, depth, size), {**named, "normalize": normalize}


def median_examples() -> Iterator[tuple[tuple[Any, ...], dict[str, Any]]]:
    """Yield small calls of every kind of ``cv2.medianBlur``."""
    for image in _images():
        for size in (3, 5, 7):
            yield (image, size), {}


@operation("src", examples=gaussian_examples)
def GaussianBlur(
    src: Image,
    ksize: Any,
    sigmaX: float,
    dst: Any = None,  # noqa: ARG001 - whoever calls kernels fills it
    sigmaY: float = 0,
    borderType: int = cv2.BORDER_DEFAULT,
    hint: int = 0,
) -> Plan | None:
    """Plan one call of ``cv2.GaussianBlur``."""
    if src.dtype not in _GAUSSIAN_TYPES or src.pixels == 0 or borderType not in FILTER_BORDERS:
        return None
    if (hint or cv2.getDefaultAlgorithmHint()) == _APPROXIMATE:
        return None
    if src.dtype == "float32":
        return _gaussian_of_floats(src, ksize, (sigmaX, sigmaY), borderType)
    weights = gaussian_weights(src, ksize, (sigmaX, sigmaY), borderType)
    if weights is None:
        return None
    return _gaussian(*weights, 8 if src.dtype == "uint8" else 16, borderType)


def gaussian_weights(
    src: Image, ksize: Any, given: tuple[float, float], borderType: int
) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
    """Return the weights along rows and columns in fixed point, or None for OpenCV to judge.

    Args:
        src: An image of bytes, or of 16 bits.
        ksize: How many weights, or 0 for as many as the sigma needs.
        given: The sigmas along rows and along columns; 0 for the same, or for what the size says.
        borderType: What is outside of the image.
    """
    found = _sizes_and_sigmas(src, ksize, given, borderType)
    if found is None:
        return None
    bits = 8 if src.dtype == "uint8" else 16
    across, down = (fixed_weights(size, sigma, bits) for size, sigma in zip(*found, strict=True))
    return across, down


def _sizes_and_sigmas(
    src: Image, ksize: Any, given: tuple[float, float], border_type: int
) -> tuple[tuple[int, int], tuple[float, float]] | None:
    """Return how many weights there are along rows and columns, and their sigmas."""
    sigmas = float(given[0]), float(given[1] if given[1] > 0 else given[0])
    reach = 3 if src.dtype == "uint8" else 4
    sizes = []
    for length, size, sigma in zip(src.size, pair(ksize), sigmas, strict=True):
        used = automatic_size(sigma, reach) if size <= 0 < sigma else size
        if length == 1 and border_type != cv2.BORDER_CONSTANT:
            used = 1
        sizes.append(used)
    if not all(size > 0 and size % 2 for size in sizes):
        return None
    return (sizes[0], sizes[1]), (max(sigmas[0], 0.0), max(sigmas[1], 0.0))


def _gaussian_of_floats(
    src: Image, ksize: Any, given: tuple[float, float], border_type: int
) -> Plan | None:
    here = environment()
    found = _sizes_and_sigmas(src, ksize, given, border_type)
    if found is None or here.version != (5, 0) or not here.is_x86:
        return None
    across, down = float_weights(*found)
    if len(across) == len(down) == 1:
        return Plan(torch.clone)
    add = multiply_add(src, is_fused=here.has_fma)
    return Plan(gaussian_blur(across, down, border_type, add))


def _gaussian(across: tuple[int, ...], down: tuple[int, ...], bits: int, border: int) -> Plan:
    if len(across) == len(down) == 1:
        return Plan(torch.clone)
    area = window([len(across), len(down)])
    work = torch.int32 if bits == 8 else torch.int64

    def run(images: Tensor) -> Tensor:
        x = area.around(images, border).to(work)
        total = weighted(weighted(x, 2, across), 1, down)
        total += 1 << (2 * bits - 1)
        total.bitwise_right_shift_(2 * bits)
        return total.to(images.dtype)

    return Plan(run)


@operation("src", examples=box_examples)
def blur(
    src: Image,
    ksize: Any,
    dst: Any = None,  # noqa: ARG001 - whoever calls kernels fills it
    anchor: Any = (-1, -1),
    borderType: int = cv2.BORDER_DEFAULT,
) -> Plan | None:
    """Plan one call of ``cv2.blur``."""
    return box_plan(src, -1, window(ksize, anchor), borderType, normalize=True)


@operation("src", examples=typed_box_examples)
def boxFilter(
    src: Image,
    ddepth: int,
    ksize: Any,
    dst: Any = None,  # noqa: ARG001 - whoever calls kernels fills it
    anchor: Any = (-1, -1),
    normalize: Any = True,
    borderType: int = cv2.BORDER_DEFAULT,
) -> Plan | None:
    """Plan one call of ``cv2.boxFilter``."""
    return box_plan(src, ddepth, window(ksize, anchor), borderType, normalize=bool(normalize))


@operation("src", examples=median_examples)
def medianBlur(
    src: Image,
    ksize: int,
    dst: Any = None,  # noqa: ARG001 - whoever calls kernels fills it
) -> Plan | None:
    """Plan one call of ``cv2.medianBlur``."""
    if src.dtype not in _MEDIAN_TYPES or src.pixels == 0:
        return None
    if type(ksize) is not int or ksize % 2 == 0 or not 0 < ksize <= _LARGEST_MEDIAN:
        return None
    if ksize > _SMALL_MEDIAN and not (src.dtype == "uint8" and src.channels in _MEDIAN_CHANNELS):
        return None
    if ksize == 1:
        return Plan(torch.clone)
    area = window((ksize, ksize))
    return Plan(lambda images: torch.cat([_medians(each, area) for each in images.split(1)]))


def _medians(image: Tensor, area: Window) -> Tensor:
    """Return the medians of one image; they take memory for a window at each pixel."""
    bordered = area.around(image, cv2.BORDER_REPLICATE)
    if bordered.dtype is torch.uint16:
        bordered = bordered.to(torch.int32)
    windows = bordered.unfold(1, area.height, 1).unfold(2, area.width, 1)
    return windows.flatten(-2).median(-1).values.to(image.dtype)
