"""`cv2.filter2D`, `sepFilter2D`, `Sobel`, `Scharr` and `Laplacian` by a Triton kernel.

They are done where all weights are whole numbers of some power of two, and sums have 16 bits.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import cv2
import numpy as np

from devicecore.cv.operation import Operation
from devicecore.cv.ops.filter import torch as filter_torch
from devicecore.cv.ops.filter.tables import whole_weights
from devicecore.cv.torch_support.windows import window
from devicecore.cv.triton_support.strips import example
from devicecore.cv.triton_support.weighted_sums import plan_weighted_sums

if TYPE_CHECKING:
    from collections.abc import Iterator

    from devicecore.cv.image import Image
    from devicecore.cv.plan import Plan

    Weights = np.ndarray[Any, Any]

_KINDS = {-1: "bytes", cv2.CV_8U: "bytes", cv2.CV_16S: "int16"}
_SHARPER = np.array([[0, -1, 0], [-1, 5, -1], [0, -1, 0]], np.float32)


def _filter_examples() -> Iterator[tuple[tuple[Any, ...], dict[str, Any]]]:
    yield (example(3), -1, _SHARPER), {}
    yield (example(4), cv2.CV_16S, _SHARPER / 4), {"delta": 2}


def _separable_examples() -> Iterator[tuple[tuple[Any, ...], dict[str, Any]]]:
    yield (example(3), -1, np.array([-1.0, 0, 3]), np.array([1.0, 2, -2])), {}


def _sobel_examples() -> Iterator[tuple[tuple[Any, ...], dict[str, Any]]]:
    yield (example(3), cv2.CV_16S, 1, 0), {}
    yield (example(1), -1, 0, 1), {"ksize": 5}


def _derivative_examples() -> Iterator[tuple[tuple[Any, ...], dict[str, Any]]]:
    yield (example(3), cv2.CV_16S, 1, 0), {}


def _laplacian_examples() -> Iterator[tuple[tuple[Any, ...], dict[str, Any]]]:
    yield (example(3), cv2.CV_16S), {}
    yield (example(4), -1), {"ksize": 3, "delta": 3}


@functools.wraps(filter_torch.filter2D.planner)
def _filter2d(
    src: Image,
    ddepth: int,
    kernel: Any,
    dst: Any = None,
    anchor: Any = (-1, -1),
    delta: float = 0,
    borderType: int = cv2.BORDER_DEFAULT,
) -> Plan | None:
    known = filter_torch.filter2D.planner(src, ddepth, kernel, dst, anchor, delta, borderType)
    if known is None:
        return None
    weights = kernel[:, None] if kernel.ndim == 1 else kernel
    return _plan(src, ddepth, weights, np.ones(len(weights)), anchor, delta, borderType)


@functools.wraps(filter_torch.sepFilter2D.planner)
def _sep_filter2d(
    src: Image,
    ddepth: int,
    kernelX: Any,
    kernelY: Any,
    dst: Any = None,
    anchor: Any = (-1, -1),
    delta: float = 0,
    borderType: int = cv2.BORDER_DEFAULT,
) -> Plan | None:
    planner = filter_torch.sepFilter2D.planner
    if planner(src, ddepth, kernelX, kernelY, dst, anchor, delta, borderType) is None:
        return None
    kernels = kernelX.ravel(), kernelY.ravel()
    return _separable(src, ddepth, kernels, anchor, delta, borderType)


@functools.wraps(filter_torch.Sobel.planner)
def _sobel(
    src: Image,
    ddepth: int,
    dx: int,
    dy: int,
    dst: Any = None,
    ksize: int = 3,
    scale: float = 1,
    delta: float = 0,
    borderType: int = cv2.BORDER_DEFAULT,
) -> Plan | None:
    planner = filter_torch.Sobel.planner
    if planner(src, ddepth, dx, dy, dst, ksize, scale, delta, borderType) is None:
        return None
    return _derivative(src, ddepth, (dx, dy, ksize), scale, delta, borderType)


@functools.wraps(filter_torch.Scharr.planner)
def _scharr(
    src: Image,
    ddepth: int,
    dx: int,
    dy: int,
    dst: Any = None,
    scale: float = 1,
    delta: float = 0,
    borderType: int = cv2.BORDER_DEFAULT,
) -> Plan | None:
    planner = filter_torch.Scharr.planner
    if planner(src, ddepth, dx, dy, dst, scale, delta, borderType) is None:
        return None
    return _derivative(src, ddepth, (dx, dy, cv2.FILTER_SCHARR), scale, delta, borderType)


@functools.wraps(filter_torch.Laplacian.planner)
def _laplacian(
    src: Image,
    ddepth: int,
    dst: Any = None,
    ksize: int = 1,
    scale: float = 1,
    delta: float = 0,
    borderType: int = cv2.BORDER_DEFAULT,
) -> Plan | None:
    known = filter_torch.Laplacian.planner(src, ddepth, dst, ksize, scale, delta, borderType)
    if known is None:
        return None
    weights = (np.array(filter_torch.LAPLACIANS[ksize], np.float64) * scale).astype(np.float32)
    return _plan(src, ddepth, weights, np.ones(3), (-1, -1), delta, borderType)


def _derivative(
    src: Image, depth: int, order: tuple[int, int, int], scale: float, delta: float, border: int
) -> Plan | None:
    across, down = cv2.getDerivKernels(*order, normalize=False, ktype=cv2.CV_32F)
    if scale != 1:
        across = across * scale
    return _separable(src, depth, (across.ravel(), down.ravel()), (-1, -1), delta, border)


def _separable(
    src: Image, depth: int, kernels: tuple[Weights, Weights], anchor: Any, delta: float, border: int
) -> Plan | None:
    # Smooth kernels with bits after the point are rounded in other ways.
    if any((kernel != np.rint(kernel)).any() for kernel in kernels):
        return None
    return _plan(
        src, depth, np.tile(kernels[0], (len(kernels[1]), 1)), kernels[1], anchor, delta, border
    )


def _plan(
    src: Image, depth: int, weights: Weights, down: Weights, anchor: Any, delta: float, border: int
) -> Plan | None:
    """Plan sums by *weights*, whose rows count as *down* says."""
    whole, kind = whole_weights(weights.astype(np.float32)), _KINDS.get(depth)
    area = window(weights.shape[::-1], anchor)
    if whole is None or kind is None or not whole.total or not down.any():
        return None
    added = delta * (1 << whole.bits)
    if added != int(added):
        return None
    finish = kind, whole.bits, int(added)
    rows, times = whole.values.tolist(), [int(each) for each in down]
    return plan_weighted_sums(src, rows, times, area, border, finish)


filter2D: Operation = Operation(
    "filter2D", "triton", _filter2d, filter_torch.filter2D.images, _filter_examples
)
sepFilter2D: Operation = Operation(
    "sepFilter2D", "triton", _sep_filter2d, filter_torch.sepFilter2D.images, _separable_examples
)
Sobel: Operation = Operation("Sobel", "triton", _sobel, filter_torch.Sobel.images, _sobel_examples)
Scharr: Operation = Operation(
    "Scharr", "triton", _scharr, filter_torch.Scharr.images, _derivative_examples
)
Laplacian: Operation = Operation(
    "Laplacian", "triton", _laplacian, filter_torch.Laplacian.images, _laplacian_examples
)
