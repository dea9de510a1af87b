"""Which of OpenCV's functions have kernels, and where; each is imported when it is asked for."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING

from devicecore.optional import installed

if TYPE_CHECKING:
    from collections.abc import Mapping

    from devicecore.cv.operation import Operation

# The module of `devicecore.cv.ops` that has each function's kernel for every device of torch.
TORCH: Mapping[str, str] = {
    "resize": "resizing",
    "cvtColor": "colours",
    "LUT": "lookup",
    "applyColorMap": "lookup",
    "calcHist": "histograms",
    "equalizeHist": "histograms",
    "CLAHE_apply": "local_contrast",
    "warpAffine": "warping",
    "warpPerspective": "warping",
    "remap": "remapping",
    "copyMakeBorder": "borders",
    "flip": "turning",
    "rotate": "turning",
    "transpose": "turning",
    "split": "channels",
    "merge": "channels",
    "extractChannel": "channels",
    "insertChannel": "channels",
    "mixChannels": "mixing",
    "add": "arithmetic",
    "subtract": "arithmetic",
    "multiply": "arithmetic",
    "divide": "arithmetic",
    "addWeighted": "blending",
    "absdiff": "arithmetic",
    "min": "comparing",
    "max": "comparing",
    "bitwise_and": "bitwise",
    "bitwise_or": "bitwise",
    "bitwise_xor": "bitwise",
    "bitwise_not": "bitwise",
    "convertScaleAbs": "blending",
    "compare": "comparing",
    "inRange": "comparing",
    "threshold": "thresholding",
    "GaussianBlur": "smoothing",
    "blur": "smoothing",
    "boxFilter": "smoothing",
    "medianBlur": "smoothing",
    "filter2D": "filtering",
    "sepFilter2D": "filtering",
    "Sobel": "filtering",
    "Scharr": "filtering",
    "Laplacian": "filtering",
    "erode": "morphology",
    "dilate": "morphology",
    "morphologyEx": "morphology",
    "pyrDown": "pyramids",
    "pyrUp": "pyramids",
    "sumElems": "reductions",
    "mean": "reductions",
    "meanStdDev": "reductions",
    "countNonZero": "reductions",
    "norm": "norms",
    "minMaxLoc": "extremes",
    "normalize": "normalizing",
    "perspectiveTransform": "transforming",
    "transform": "transforming",
    "adaptiveThreshold": "adapting",
    "reduce": "reducing",
    "integral": "integrals",
    "undistort": "undistorting",
    "dft": "fourier",
    "idft": "fourier",
    "matchTemplate": "matching",
    "warpPolar": "polar",
    "bilateralFilter": "bilateral",
    "pow": "powers",
    "sqrt": "powers",
    "exp": "powers",
    "log": "powers",
    "magnitude": "powers",
}
# Functions of pixels without a kernel: OpenCV answers on the host, also for tensors.
HOST: tuple[str, ...] = (
    "Canny",
    "distanceTransform",
    "stackBlur",
)
# The parameter that each result is written into, where that is not one result and its "dst".
OUTPUTS: Mapping[str, tuple[str, ...]] = {
    "threshold": ("", "dst"),
    "split": ("mv",),
    "calcHist": ("hist",),
    "meanStdDev": ("mean", "stddev"),
    "integral": ("sum",),
    "matchTemplate": ("result",),
    "magnitude": ("magnitude",),
}
# OpenCV refuses these where the result is to overwrite an image, or what comes out depends on the
# order of its operations.
NOT_IN_PLACE: frozenset[str] = frozenset({"bilateralFilter", "matchTemplate", "remap", "undistort"})
# Of `devicecore.cv.triton`, for cards that Triton compiles for.
TRITON: Mapping[str, str] = {
    "resize": "resizing",
    "cvtColor": "colours",
    "GaussianBlur": "smoothing",
    "LUT": "pointwise",
    "Laplacian": "filtering",
    "Scharr": "filtering",
    "Sobel": "filtering",
    "absdiff": "pointwise",
    "add": "pointwise",
    "addWeighted": "pointwise",
    "bitwise_and": "pointwise",
    "bitwise_not": "pointwise",
    "bitwise_or": "pointwise",
    "bitwise_xor": "pointwise",
    "blur": "boxes",
    "boxFilter": "boxes",
    "convertScaleAbs": "pointwise",
    "dilate": "morphology",
    "erode": "morphology",
    "filter2D": "filtering",
    "max": "pointwise",
    "medianBlur": "ranking",
    "min": "pointwise",
    "morphologyEx": "morphology",
    "pyrDown": "pyramids",
    "sepFilter2D": "filtering",
    "subtract": "pointwise",
    "threshold": "pointwise",
    "warpAffine": "warping",
    "warpPerspective": "warping",
    "copyMakeBorder": "borders",
    "flip": "turning",
    "rotate": "turning",
    "transpose": "turning",
    "multiply": "pointwise",
    "divide": "pointwise",
    "remap": "remapping",
    "split": "channels",
    "merge": "channels",
    "extractChannel": "channels",
}
# Of `devicecore.cv.kornia_calls`, for whoever accepts about the same pixels.
KORNIA: Mapping[str, str] = dict.fromkeys(
    (
        "GaussianBlur",
        "blur",
        "cvtColor",
        "filter2D",
        "medianBlur",
        "resize",
        "warpAffine",
        "warpPerspective",
    ),
    "kornia_calls",
)
TRITON_TYPES: frozenset[str] = frozenset({"CUDA", "ROCM"})

_PLACES: Mapping[str, tuple[str, Mapping[str, str]]] = {
    "torch": ("devicecore.cv.ops", TORCH),
    "triton": ("devicecore.cv.triton", TRITON),
    "kornia": ("devicecore.cv", KORNIA),
}


@cache
def find(name: str, label: str) -> Operation | None:
    """Return the operation of one of OpenCV's functions in one kind of kernel, if there is one."""
    package, modules = _PLACES[label]
    module = modules.get(name)
    if module is None or (label != "torch" and not installed(label)):
        return None
    found: Operation = getattr(import_module(f"{package}.{module}"), name)
    return found
