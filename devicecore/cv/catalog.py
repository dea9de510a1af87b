"""The catalogue: one row for each OpenCV function, with its folder in `devicecore.cv.ops`.

A kernel's module is imported when it is first asked for; reading a row imports nothing.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING

from attrs import frozen

from devicecore.optional import installed

if TYPE_CHECKING:
    from collections.abc import Mapping

    from devicecore.cv.operation import Operation

_TRITON = ("torch", "triton")
_ALL = ("torch", "triton", "kornia")


@frozen
class OpInfo:
    """What is known of one OpenCV function before its kernels are imported.

    Attributes:
        name: OpenCV's name.
        folder: The folder in `devicecore.cv.ops` that holds its kernels.
        labels: The kinds of kernels that it has; without one, OpenCV answers on the host.
        outputs: The parameter that each result is written into; empty for none.
        in_place: Whether the result may overwrite an image. OpenCV refuses some of these calls, or
            what comes out depends on the order of its operations.
        signatures: The parameters of each overload, where one planner is for several.
        takes_list: Whether OpenCV itself takes a list of images; a batch is a list of such lists.
        dispatched: Whether `devicecore.cv` has a function of this name; else cv2's own is there,
            and only a kernel for the CPU is registered.
        draws: Whether it draws into its first argument, so that a second try would draw twice.
        bounded: Whether finite images have finite results.
        recorded: Whether a frame may record calls of it: all its results are new arrays.
        reads_bounds: Whether a recorded call needs the range of its images' values. Programs add
            noise by these functions, and clip then.
        records_dst: Whether a recorded call may have a *dst*: each value of the result depends on
            its images' values at the same place only.
    """

    name: str
    folder: str = ""
    labels: tuple[str, ...] = ("torch",)
    outputs: tuple[str, ...] = ("dst",)
    in_place: bool = True
    signatures: tuple[tuple[str, ...], ...] = ()
    takes_list: bool = False
    dispatched: bool = True
    draws: bool = False
    bounded: bool = True
    recorded: bool = True
    reads_bounds: bool = False
    records_dst: bool = False


_ROWS = (
    OpInfo("resize", "resize", labels=_ALL),
    OpInfo("cvtColor", "color", labels=_ALL),
    OpInfo("LUT", "lut", labels=_TRITON, records_dst=True),
    OpInfo(
        "applyColorMap", "lut", signatures=(("src", "colormap", "dst"), ("src", "userColor", "dst"))
    ),
    OpInfo("calcHist", "histogram", outputs=("hist",), takes_list=True, recorded=False),
    OpInfo("equalizeHist", "histogram"),
    OpInfo("CLAHE_apply", "clahe"),
    OpInfo("warpAffine", "warp", labels=_ALL),
    OpInfo("warpPerspective", "warp", labels=_ALL),
    OpInfo("remap", "remap", labels=_TRITON, in_place=False),
    OpInfo("copyMakeBorder", "copy_make_border", labels=_TRITON),
    OpInfo("flip", "flip_rotate", labels=_TRITON),
    OpInfo("rotate", "flip_rotate", labels=_TRITON),
    OpInfo("transpose", "flip_rotate", labels=_TRITON),
    OpInfo("split", "channels", labels=_TRITON, outputs=("mv",)),
    OpInfo("merge", "channels", labels=_TRITON, takes_list=True),
    OpInfo("extractChannel", "channels", labels=_TRITON),
    OpInfo("insertChannel", "channels", recorded=False),
    OpInfo("mixChannels", "mix_channels", takes_list=True, recorded=False),
    OpInfo("add", "arithmetic", labels=_TRITON, records_dst=True, reads_bounds=True),
    OpInfo("subtract", "arithmetic", labels=_TRITON, records_dst=True, reads_bounds=True),
    OpInfo("multiply", "arithmetic", labels=_TRITON, records_dst=True, reads_bounds=True),
    OpInfo("divide", "arithmetic", labels=_TRITON, bounded=False),
    OpInfo("absdiff", "arithmetic", labels=_TRITON, records_dst=True),
    OpInfo("addWeighted", "blend", labels=_TRITON, records_dst=True, reads_bounds=True),
    OpInfo("convertScaleAbs", "blend", labels=_TRITON, records_dst=True),
    OpInfo("min", "compare", labels=_TRITON, records_dst=True),
    OpInfo("max", "compare", labels=_TRITON, records_dst=True),
    OpInfo("compare", "compare"),
    OpInfo("inRange", "compare"),
    OpInfo("bitwise_and", "bitwise", labels=_TRITON, records_dst=True, bounded=False),
    OpInfo("bitwise_or", "bitwise", labels=_TRITON, records_dst=True, bounded=False),
    OpInfo("bitwise_xor", "bitwise", labels=_TRITON, records_dst=True, bounded=False),
    OpInfo("bitwise_not", "bitwise", labels=_TRITON, records_dst=True, bounded=False),
    OpInfo("threshold", "threshold", labels=_TRITON, outputs=("", "dst"), recorded=False),
    OpInfo("GaussianBlur", "gaussian_blur", labels=_ALL),
    OpInfo("blur", "box_filter", labels=_ALL),
    OpInfo("boxFilter", "box_filter", labels=_TRITON),
    OpInfo("medianBlur", "median", labels=_ALL),
    OpInfo("filter2D", "filter", labels=_ALL),
    OpInfo("sepFilter2D", "filter", labels=_TRITON),
    OpInfo("Sobel", "filter", labels=_TRITON),
    OpInfo("Scharr", "filter", labels=_TRITON),
    OpInfo("Laplacian", "filter", labels=_TRITON),
    OpInfo("erode", "morphology", labels=_TRITON),
    OpInfo("dilate", "morphology", labels=_TRITON),
    OpInfo("morphologyEx", "morphology", labels=_TRITON),
    OpInfo("pyrDown", "pyramid", labels=_TRITON, recorded=False),
    OpInfo("pyrUp", "pyramid", recorded=False),
    OpInfo("sumElems", "statistics", recorded=False),
    OpInfo("mean", "statistics", recorded=False),
    OpInfo("meanStdDev", "statistics", outputs=("mean", "stddev"), recorded=False),
    OpInfo("countNonZero", "statistics", recorded=False),
    OpInfo(
        "norm",
        "norm",
        signatures=(("src1", "normType", "mask"), ("src1", "src2", "normType", "mask")),
        recorded=False,
    ),
    OpInfo("minMaxLoc", "min_max_loc", recorded=False),
    OpInfo("normalize", "normalize", recorded=False),
    OpInfo("perspectiveTransform", "transform", recorded=False),
    OpInfo("transform", "transform", recorded=False),
    OpInfo("adaptiveThreshold", "adaptive_threshold"),
    OpInfo("reduce", "reduce", recorded=False),
    OpInfo("integral", "integral", outputs=("sum",), recorded=False),
    OpInfo("undistort", "undistort", in_place=False, recorded=False),
    OpInfo("dft", "dft", recorded=False),
    OpInfo("idft", "dft", recorded=False),
    OpInfo("matchTemplate", "match_template", outputs=("result",), in_place=False, recorded=False),
    OpInfo("warpPolar", "warp_polar", recorded=False),
    OpInfo("bilateralFilter", "bilateral_filter", in_place=False),
    OpInfo("pow", "power", recorded=False),
    OpInfo("sqrt", "power", recorded=False),
    OpInfo("exp", "power", recorded=False),
    OpInfo("log", "power", recorded=False),
    OpInfo("magnitude", "power", outputs=("magnitude",), recorded=False),
    OpInfo("Canny", labels=()),
    OpInfo("distanceTransform", labels=()),
    OpInfo("stackBlur", labels=()),
    # Our own programs call these as kernels.
    OpInfo("boxPoints", labels=(), dispatched=False),
    OpInfo("findContours", labels=(), dispatched=False),
    OpInfo("getPerspectiveTransform", labels=(), dispatched=False),
    OpInfo("minAreaRect", labels=(), dispatched=False),
    OpInfo("fillPoly", labels=(), dispatched=False, draws=True),
    OpInfo("polylines", labels=(), dispatched=False, draws=True),
)
ROWS: Mapping[str, OpInfo] = {row.name: row for row in _ROWS}


def find_row(name: str) -> OpInfo:
    """Return the row of one of OpenCV's functions; for any other, one with the defaults."""
    return ROWS.get(name) or OpInfo(name, labels=())


def _rows_with(label: str) -> Mapping[str, OpInfo]:
    return {name: row for name, row in ROWS.items() if label in row.labels}


# For every device of torch; for GPUs that Triton compiles for; for callers who accept close pixels.
TORCH = _rows_with("torch")
TRITON = _rows_with("triton")
KORNIA = _rows_with("kornia")
# Functions of pixels without a kernel: OpenCV answers on the host, also for tensors.
HOST: tuple[str, ...] = tuple(
    name for name, row in ROWS.items() if row.dispatched and not row.labels
)
TRITON_TYPES: frozenset[str] = frozenset({"CUDA", "ROCM"})


@cache
def find(name: str, label: str) -> Operation | None:
    """Return the operation of one of OpenCV's functions in one kind of kernel, if there is one."""
    row = find_row(name)
    if label not in row.labels or (label != "torch" and not installed(label)):
        return None
    is_kornia = label == "kornia"
    module = (
        "devicecore.cv.kornia_calls" if is_kornia else f"devicecore.cv.ops.{row.folder}.{label}"
    )
    operation: Operation = getattr(import_module(module), name)
    return operation
