"""A plain call of each of OpenCV's functions that have a kernel."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import cv2
import numpy as np

from devicecore.cv import catalog
from tests.cv.differential import image

if TYPE_CHECKING:
    from collections.abc import Callable

    Array = np.ndarray[Any, Any]
    Call = tuple[tuple[Any, ...], dict[str, Any]]

# Channels and type of images that are not three channels of bytes; a plane has 0.
KINDS: dict[str, tuple[int, str]] = {
    "equalizeHist": (0, "uint8"),
    "CLAHE_apply": (0, "uint8"),
    "adaptiveThreshold": (0, "uint8"),
    "countNonZero": (0, "uint8"),
    "minMaxLoc": (0, "uint8"),
    "matchTemplate": (0, "uint8"),
    "perspectiveTransform": (2, "float32"),
    "transform": (3, "float32"),
    "dft": (2, "float32"),
    "idft": (2, "float32"),
    "pow": (3, "float32"),
    "sqrt": (3, "float32"),
    "exp": (3, "float32"),
    "log": (3, "float32"),
    "magnitude": (3, "float32"),
}
_KERNEL = np.array([[0, -1, 0], [-1, 5, -1], [0, -1, 0]], np.float32)
_SMOOTH = np.array([0.25, 0.5, 0.25])
_ONES = np.ones((3, 3), np.uint8)
_TURN = np.array([[0.9, 0.1, 1], [-0.1, 0.9, 2]])
_VIEW = np.vstack([_TURN, [0.001, 0, 1]])


def _size(x: Array) -> tuple[int, int]:
    return x.shape[1], x.shape[0]


def _maps(x: Array) -> tuple[Array, Array]:
    return cv2.initUndistortRectifyMap(
        _camera(x), np.zeros(4), np.eye(3), _camera(x) + 0.3, _size(x), cv2.CV_32FC1
    )


def _camera(x: Array) -> Array:
    width, height = _size(x)
    return np.array([[20.0, 0, width / 2], [0, 20, height / 2], [0, 0, 1]])


def _plane(x: Array) -> Array:
    return np.ascontiguousarray(x[..., 0]) if x.ndim > 2 else x.copy()


def _channels(x: Array) -> int:
    return x.shape[2] if x.ndim > 2 else 1


# For an image and another one like it; what is written into is always the caller's.
_CALLS: dict[str, Callable[[Array, Array], tuple[Any, ...]]] = {
    "resize": lambda x, _: (x, _size(x[::2, ::2])),
    "cvtColor": lambda x, _: (x, cv2.COLOR_BGR2RGB),
    "LUT": lambda x, _: (x, np.arange(256, dtype=np.uint8)[::-1].copy()),
    "applyColorMap": lambda x, _: (x, cv2.COLORMAP_JET),
    "calcHist": lambda x, _: ([x], [0], None, [16], [0, 256]),
    "equalizeHist": lambda x, _: (x,),
    "CLAHE_apply": lambda x, _: (x, 2.0, (2, 2), 0),
    "warpAffine": lambda x, _: (x, _TURN, _size(x)),
    "warpPerspective": lambda x, _: (x, _VIEW, _size(x)),
    "remap": lambda x, _: (x, *_maps(x), cv2.INTER_LINEAR),
    "copyMakeBorder": lambda x, _: (x, 1, 2, 3, 4, cv2.BORDER_REFLECT),
    "flip": lambda x, _: (x, 1),
    "rotate": lambda x, _: (x, cv2.ROTATE_180),
    "transpose": lambda x, _: (x,),
    "split": lambda x, _: (x,),
    "merge": lambda x, y: ([x, y],),
    "extractChannel": lambda x, _: (x, 0),
    "insertChannel": lambda x, y: (_plane(x), y, 0),
    "mixChannels": lambda x, y: ([x], [y], [0, 0]),
    "add": lambda x, y: (x, y),
    "subtract": lambda x, y: (x, y),
    "multiply": lambda x, y: (x, y),
    "divide": lambda x, y: (x, y),
    "addWeighted": lambda x, y: (x, 0.3, y, 0.7, 2),
    "absdiff": lambda x, y: (x, y),
    "min": lambda x, y: (x, y),
    "max": lambda x, y: (x, y),
    "bitwise_and": lambda x, y: (x, y),
    "bitwise_or": lambda x, y: (x, y),
    "bitwise_xor": lambda x, y: (x, y),
    "bitwise_not": lambda x, _: (x,),
    "convertScaleAbs": lambda x, _: (x,),
    "compare": lambda x, y: (x, y, cv2.CMP_GT),
    "inRange": lambda x, y: (x, np.minimum(x, y), y),
    "threshold": lambda x, _: (x, 100, 255, cv2.THRESH_BINARY),
    "GaussianBlur": lambda x, _: (x, (3, 3), 0),
    "blur": lambda x, _: (x, (3, 3)),
    "boxFilter": lambda x, _: (x, -1, (3, 3)),
    "medianBlur": lambda x, _: (x, 3),
    "filter2D": lambda x, _: (x, -1, _KERNEL),
    "sepFilter2D": lambda x, _: (x, -1, _SMOOTH, _SMOOTH),
    "Sobel": lambda x, _: (x, cv2.CV_16S, 1, 0),
    "Scharr": lambda x, _: (x, cv2.CV_16S, 1, 0),
    "Laplacian": lambda x, _: (x, -1),
    "erode": lambda x, _: (x, _ONES),
    "dilate": lambda x, _: (x, _ONES),
    "morphologyEx": lambda x, _: (x, cv2.MORPH_OPEN, _ONES),
    "pyrDown": lambda x, _: (x,),
    "pyrUp": lambda x, _: (x,),
    "sumElems": lambda x, _: (x,),
    "mean": lambda x, _: (x,),
    "meanStdDev": lambda x, _: (x,),
    "countNonZero": lambda x, _: (x,),
    "norm": lambda x, y: (x, y),
    "minMaxLoc": lambda x, _: (x,),
    "normalize": lambda x, _: (x, None, 0, 255, cv2.NORM_MINMAX),
    "perspectiveTransform": lambda x, _: (x, np.eye(_channels(x) + 1)),
    "transform": lambda x, _: (x, np.eye(_channels(x))),
    "adaptiveThreshold": lambda x, _: (x, 255, 0, 0, 3, 1),
    "reduce": lambda x, _: (x, 0, cv2.REDUCE_AVG),
    "integral": lambda x, _: (x,),
    "undistort": lambda x, _: (x, _camera(x), np.array([0.1, -0.05, 0, 0])),
    "dft": lambda x, _: (x,),
    "idft": lambda x, _: (x,),
    "matchTemplate": lambda x, _: (x, x[2:7, 3:9].copy(), cv2.TM_SQDIFF),
    "warpPolar": lambda x, _: (
        x,
        _size(x),
        (9.5, 8),
        9.0,
        cv2.INTER_LINEAR | cv2.WARP_FILL_OUTLIERS,
    ),
    "bilateralFilter": lambda x, _: (x, 5, 20, 20),
    "pow": lambda x, _: (x, 2),
    "sqrt": lambda x, _: (x,),
    "exp": lambda x, _: (x,),
    "log": lambda x, _: (x,),
    "magnitude": lambda x, y: (x, y),
}


def names_of_results(name: str) -> list[str]:
    """Return the parameters that results of a function are written into, all optional."""
    operation = catalog.find(name, "torch")
    assert operation is not None
    names = [each for each in catalog.find_row(name).outputs if each in operation.parameters]
    return [each for each in names if each not in operation.images]


def call(name: str, channels: int | None = None, size: tuple[int, int] = (18, 24)) -> Call:
    """Return the arguments of a plain call.

    Args:
        name: OpenCV's name of the function.
        channels: Of the images; None for what suits the function.
        size: Rows and columns.
    """
    own, dtype = KINDS.get(name, (3, "uint8"))
    count = own if channels is None else channels
    first, second = (image(*size, count, dtype, seed) for seed in (1, 2))
    if count == 0 and channels == 0:
        first, second = (np.zeros((*size, 0), dtype) for _ in range(2))
    return _CALLS[name](first, second), {}


NAMES = sorted(_CALLS)
