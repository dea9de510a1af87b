"""`cv2.filter2D`, `sepFilter2D`, `Sobel`, `Scharr` and `Laplacian` on torch tensors."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import cv2
import numpy as np
import torch

from devicecore.cv.environment import environment
from devicecore.cv.operation import operation
from devicecore.cv.ops.filter.correlation import (
    correlation,
    separable,
    target_of,
    whole_correlation,
)
from devicecore.cv.ops.filter.rounded_separable import rounded_separable
from devicecore.cv.ops.gaussian_blur.float_blur import gaussian_blur
from devicecore.cv.plan import Plan
from devicecore.cv.result_rules import of_depth
from devicecore.cv.torch_support.fma import multiply_add
from devicecore.cv.torch_support.windows import FILTER_BORDERS, Window, window

if TYPE_CHECKING:
    from collections.abc import Iterator

    from devicecore.cv.image import Image

_KERNEL_TYPES = frozenset({np.dtype("float32"), np.dtype("float64")})
# What OpenCV rounds to.
_LARGEST_INT = (1 << 31) - 1
# By the size that is asked for; larger ones are sums of separable filters.
LAPLACIANS: dict[int, tuple[tuple[int, ...], ...]] = {
    1: ((0, 1, 0), (1, -4, 1), (0, 1, 0)),
    3: ((2, 0, 2), (0, -8, 0), (2, 0, 2)),
}


def _images() -> Iterator[Any]:
    chance = np.random.default_rng(10)
    for dtype in ("uint8", "uint16", "int16"):
        limits = np.iinfo(dtype)
        yield chance.integers(limits.min, limits.max, (11, 19, 3), dtype, endpoint=True)
    yield chance.random((11, 19, 3), np.float32)


def filter_examples() -> Iterator[tuple[tuple[Any, ...], dict[str, Any]]]:
    """Yield small calls of every kind of ``cv2.filter2D``."""
    chance = np.random.default_rng(11)
    sharp = np.array([[0, -1, 0], [-1, 5, -1], [0, -1, 0]], np.float32)
    for image in _images():
        for kernel in (sharp, sharp / 4, chance.random((5, 4)), chance.normal(size=(3, 3))):
            for depth in (-1, cv2.CV_16S, cv2.CV_32F):
                for border in sorted(FILTER_BORDERS):
                    yield (image, depth, kernel), {"borderType": border, "delta": 0.5}


def separable_examples() -> Iterator[tuple[tuple[Any, ...], dict[str, Any]]]:
    """Yield small calls of every kind of ``cv2.sepFilter2D``."""
    smooth, slope = np.array([0.25, 0.5, 0.25]), np.array([-1.0, 0, 1, 2])
    bell = cv2.getGaussianKernel(5, 1.1)
    for image in _images():
        for kernels in ((smooth, smooth), (slope, smooth), (slope, slope), (bell, bell)):
            for depth in (-1, cv2.CV_16S, cv2.CV_32F):
                yield (image, depth, *kernels), {}


def derivative_examples() -> Iterator[tuple[tuple[Any, ...], dict[str, Any]]]:
    """Yield small calls of every kind of derivatives that ``cv2.Scharr`` has."""
    for image in _images():
        for depth in (-1, cv2.CV_16S, cv2.CV_32F):
            for order in ((1, 0), (0, 1)):
                for border in sorted(FILTER_BORDERS):
                    yield (image, depth, *order), {"borderType": border, "scale": 0.5}


def sobel_examples() -> Iterator[tuple[tuple[Any, ...], dict[str, Any]]]:
    """Yield small calls of every kind of ``cv2.Sobel``."""
    for arguments, named in derivative_examples():
        for size in (-1, 1, 3, 5):
            yield arguments, {**named, "ksize": size}


def laplacian_examples() -> Iterator[tuple[tuple[Any, ...], dict[str, Any]]]:
    """Yield small calls of every kind of ``cv2.Laplacian``."""
    for image in _images():
        for depth in (-1, cv2.CV_16S, cv2.CV_32F):
            for size in LAPLACIANS:
                yield (image, depth), {"ksize": size, "scale": 0.5, "delta": 3}


@operation("src", examples=filter_examples, result=of_depth("ddepth"))
def filter2D(
    src: Image,
    ddepth: int,
    kernel: Any,
    dst: Any = None,  # noqa: ARG001 - whoever calls kernels fills it
    anchor: Any = (-1, -1),
    delta: float = 0,
    borderType: int = cv2.BORDER_DEFAULT,
) -> Plan | None:
    """Plan one call of ``cv2.filter2D``."""
    target = target_of(src, ddepth)
    weights = _weights(kernel)
    if target is None or weights is None or borderType not in FILTER_BORDERS:
        return None
    # OpenCV takes an array of one axis for a row or a column, by its version.
    if np.ndim(kernel) != 2 or not _fits_integers(src, target, weights, delta):
        return None
    height, width = weights.shape
    return correlation(src, target, weights, window((width, height), anchor), delta, borderType)


def _fits_integers(
    src: Image, target: torch.dtype, weights: np.ndarray[Any, Any], delta: float
) -> bool:
    """Return whether sums are such that OpenCV rounds them to a type of 32 bits rightly."""
    if target.is_floating_point:
        return math.isfinite(delta)
    largest = 1.0 if np.dtype(src.dtype).kind == "f" else float(np.iinfo(src.dtype).max) + 1
    return abs(delta) + float(np.abs(weights).astype(np.float64).sum()) * largest < _LARGEST_INT


@operation("src", examples=separable_examples, result=of_depth("ddepth"))
def sepFilter2D(
    src: Image,
    ddepth: int,
    kernelX: Any,
    kernelY: Any,
    dst: Any = None,  # noqa: ARG001 - whoever calls kernels fills it
    anchor: Any = (-1, -1),
    delta: float = 0,
    borderType: int = cv2.BORDER_DEFAULT,
) -> Plan | None:
    """Plan one call of ``cv2.sepFilter2D``."""
    across, down = _weights(kernelX), _weights(kernelY)
    if across is None or down is None or across.dtype != down.dtype:
        return None
    if min(across.shape) != 1 or min(down.shape) != 1:
        return None
    return _separable(src, ddepth, (across.ravel(), down.ravel()), anchor, delta, borderType)


def _separable(
    src: Image,
    depth: int,
    kernels: tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]],
    anchor: Any,
    delta: float,
    border_type: int,
) -> Plan | None:
    target = target_of(src, depth)
    if target is None or border_type not in FILTER_BORDERS or not math.isfinite(delta):
        return None
    area = window((len(kernels[0]), len(kernels[1])), anchor)
    found = separable(src, target, kernels, area, delta, border_type)
    if found is None and target is torch.uint8:
        return rounded_separable(src, kernels, area, delta, border_type)
    if src.dtype == "float32" and delta == 0:
        return _symmetrical(src, kernels, area, border_type)
    return found


def _symmetrical(
    src: Image,
    kernels: tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]],
    area: Window,
    border_type: int,
) -> Plan | None:
    """Plan sums of float32, as those of Gaussian blurs, with kernels such as these have."""
    here = environment()
    if here.version != (5, 0) or not here.is_x86:
        return None
    is_centred = (2 * area.left + 1, 2 * area.top + 1) == (area.width, area.height)
    if not is_centred or not all(np.array_equal(each, each[::-1]) for each in kernels):
        return None
    across, down = (each.astype(np.float32).tolist() for each in kernels)
    if not (_is_mean(across) and _is_mean(down)):
        return None
    add = multiply_add(src, is_fused=here.has_fma)
    return Plan(gaussian_blur(across, down, border_type, add))


def _is_mean(weights: list[float]) -> bool:
    """Return whether no other loop of OpenCV's is for these, such as those of whole numbers."""
    return all(0 < each < 1 for each in weights) if len(weights) > 1 else weights == [1]


@operation("src", examples=sobel_examples, result=of_depth("ddepth"))
def Sobel(
    src: Image,
    ddepth: int,
    dx: int,
    dy: int,
    dst: Any = None,  # noqa: ARG001 - whoever calls kernels fills it
    ksize: int = 3,
    scale: float = 1,
    delta: float = 0,
    borderType: int = cv2.BORDER_DEFAULT,
) -> Plan | None:
    """Plan one call of ``cv2.Sobel``."""
    return _derivative(src, ddepth, (dx, dy, ksize), scale, delta, borderType)


@operation("src", examples=derivative_examples, result=of_depth("ddepth"))
def Scharr(
    src: Image,
    ddepth: int,
    dx: int,
    dy: int,
    dst: Any = None,  # noqa: ARG001 - whoever calls kernels fills it
    scale: float = 1,
    delta: float = 0,
    borderType: int = cv2.BORDER_DEFAULT,
) -> Plan | None:
    """Plan one call of ``cv2.Scharr``."""
    return _derivative(src, ddepth, (dx, dy, cv2.FILTER_SCHARR), scale, delta, borderType)


def _derivative(
    src: Image, depth: int, order: tuple[int, int, int], scale: float, delta: float, border: int
) -> Plan | None:
    dx, dy, size = order
    try:
        kernels = cv2.getDerivKernels(dx, dy, size, normalize=False, ktype=cv2.CV_32F)
    except cv2.error:  # OpenCV has to say so about the call itself
        return None
    across, down = (each.ravel() for each in kernels)
    if scale != 1:
        if dx == 0:
            across = (across * float(scale)).astype(np.float32)
        else:
            down = (down * float(scale)).astype(np.float32)
    return _separable(src, depth, (across, down), (-1, -1), delta, border)


@operation("src", examples=laplacian_examples, result=of_depth("ddepth"))
def Laplacian(
    src: Image,
    ddepth: int,
    dst: Any = None,  # noqa: ARG001 - whoever calls kernels fills it
    ksize: int = 1,
    scale: float = 1,
    delta: float = 0,
    borderType: int = cv2.BORDER_DEFAULT,
) -> Plan | None:
    """Plan one call of ``cv2.Laplacian``."""
    target, rows = target_of(src, ddepth), LAPLACIANS.get(ksize)
    if target is None or rows is None or borderType not in FILTER_BORDERS:
        return None
    if not math.isfinite(scale * delta):
        return None
    kernel = (np.array(rows, np.float64) * scale).astype(np.float32)
    # Others are computed by IPP, or with other roundings.
    return whole_correlation(src, target, kernel, window((3, 3)), delta, borderType)


def _weights(kernel: Any) -> np.ndarray[Any, Any] | None:
    """Return weights with two axes, or None where OpenCV has to judge."""
    if not isinstance(kernel, np.ndarray) or kernel.dtype not in _KERNEL_TYPES or not kernel.size:
        return None
    if kernel.ndim == 1:
        return kernel[:, None]
    return kernel if kernel.ndim == 2 else None
