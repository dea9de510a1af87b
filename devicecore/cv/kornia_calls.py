"""Functions as kornia computes them: about the same pixels, for callers who accept that.

Bytes are computed as floats from 0 to 1, rounded at the end; there is nothing of ours in between.
"""

from __future__ import annotations

import functools
import math
from inspect import signature
from typing import TYPE_CHECKING, Any

import cv2
import kornia
import numpy as np
import torch

from devicecore.cv import catalog
from devicecore.cv.arguments import size, whole
from devicecore.cv.operation import Operation
from devicecore.cv.plan import Plan

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from devicecore.cv.image import Image

    Tensor = torch.Tensor

_MODES = {cv2.INTER_NEAREST: "nearest", cv2.INTER_LINEAR: "bilinear", cv2.INTER_CUBIC: "bicubic"}
_INTERPOLATION = 7  # the part of the flags of warps that names it
_PADDINGS = {
    cv2.BORDER_CONSTANT: "zeros",
    cv2.BORDER_REPLICATE: "border",
    cv2.BORDER_REFLECT_101: "reflection",
}
_BORDERS = {
    cv2.BORDER_CONSTANT: "constant",
    cv2.BORDER_REPLICATE: "replicate",
    cv2.BORDER_REFLECT_101: "reflect",
}
_DEGREES = 180 / (2 * math.pi)


def _operation(name: str, compute: Callable[..., Callable[[Tensor], Tensor] | None]) -> Operation:
    """Return the operation of a function.

    Args:
        name: OpenCV's name of it.
        compute: Gets all arguments by their names, and returns what is done to floats of shape
            (images, channels, height, width), or None.
    """
    known = catalog.find(name, "torch")
    assert known is not None  # the signature is torch's kernel's
    parameters = signature(known.planner)

    def planner(*args: Any, **kwargs: Any) -> Plan | None:
        bound = parameters.bind(*args, **kwargs)
        bound.apply_defaults()
        kornia_call = compute(**bound.arguments)
        if kornia_call is None or bound.arguments["src"].dtype != "uint8":
            return None
        return Plan(functools.partial(_on_bytes, kornia_call), "close")

    wrapped = functools.wraps(known.planner)(planner)
    examples = functools.partial(_examples, name)
    return Operation(name, "kornia", wrapped, known.images, examples)


def _on_bytes(compute: Callable[[Tensor], Tensor], images: Tensor) -> Tensor:
    planes = images.permute(0, 3, 1, 2).float() / 255
    result = compute(planes).mul(255).round_().clamp_(0, 255)
    return result.to(torch.uint8).permute(0, 2, 3, 1)


def _examples(name: str) -> Iterator[tuple[tuple[Any, ...], dict[str, Any]]]:
    image = np.random.default_rng(4).integers(0, 256, (24, 31, 3), np.uint8)
    turn = np.array([(0.9, -0.3, 3), (0.3, 0.9, -2)])
    calls: dict[str, list[tuple[Any, ...]]] = {
        "resize": [((17, 12), None, 0, 0, mode) for mode in _MODES],
        "cvtColor": [(code,) for code in _COLOURS],
        "warpAffine": [(turn, (31, 24))],
        "warpPerspective": [(np.vstack([turn, (0.001, 0.002, 1)]), (31, 24))],
        "GaussianBlur": [((5, 5), 1.2)],
        "blur": [((5, 3),)],
        "medianBlur": [(3,)],
        "filter2D": [(-1, np.array([(0, -1, 0), (-1, 5, -1), (0, -1, 0)], np.float32))],
    }
    for args in calls[name]:
        yield (image, *args), {}


def _resize(
    src: Image, dsize: Any, fx: float, fy: float, interpolation: int, **_: Any
) -> Callable[[Tensor], Tensor] | None:
    width, height = (round(src.width * fx), round(src.height * fy)) if not dsize else size(dsize)
    mode = _MODES.get(interpolation)
    if mode is None or min(width, height) < 1:
        return None
    return lambda x: kornia.geometry.resize(x, (height, width), mode, antialias=False)


def _matrix(M: Any, flags: int) -> Any:
    """Return the matrix to the result, of shape (1, 3, 3)."""
    matrix = np.vstack([np.asarray(M, np.float64), [(0, 0, 1)]])[:3]
    if flags & cv2.WARP_INVERSE_MAP:
        matrix = np.linalg.inv(matrix)
    return torch.from_numpy(matrix.astype(np.float32))[None]


def _warp(
    src: Image, M: Any, dsize: Any, flags: int, borderMode: int, borderValue: Any, **_: Any
) -> Callable[[Tensor], Tensor] | None:
    mode, padding = _MODES.get(whole(flags) & _INTERPOLATION), _PADDINGS.get(borderMode)
    if mode is None or padding is None or (borderValue and any(np.atleast_1d(borderValue))):
        return None
    width, height = src.size if dsize is None else size(dsize)
    matrix = _matrix(M, flags)

    def run(x: Tensor) -> Tensor:
        own = matrix.to(x.device).expand(len(x), 3, 3)
        result: Tensor = kornia.geometry.warp_perspective(x, own, (height, width), mode, padding)
        return result

    return run


def _border(src: Image, border_type: int, width: int, height: int) -> str | None:
    """Return kornia's name of a border around windows of a size, or None where it has none."""
    is_short = width // 2 >= src.width or height // 2 >= src.height
    if border_type == cv2.BORDER_REFLECT_101 and is_short:
        return None  # torch reflects only once
    return _BORDERS.get(border_type)


def _gaussian(
    src: Image, ksize: Any, sigmaX: float, sigmaY: float, borderType: int, **_: Any
) -> Callable[[Tensor], Tensor] | None:
    width, height = ksize
    border = _border(src, borderType, width, height)
    if border is None or sigmaX <= 0 or not (width % 2 and height % 2):
        return None
    sigma = (float(sigmaY or sigmaX), float(sigmaX))
    return lambda x: kornia.filters.gaussian_blur2d(x, (height, width), sigma, border)


def _box(
    src: Image, ksize: Any, anchor: Any, borderType: int, **_: Any
) -> Callable[[Tensor], Tensor] | None:
    width, height = ksize
    border = _border(src, borderType, width, height)
    if border is None or tuple(anchor) != (-1, -1) or not (width % 2 and height % 2):
        return None
    return lambda x: kornia.filters.box_blur(x, (height, width), border)


def _median(ksize: int, **_: Any) -> Callable[[Tensor], Tensor] | None:
    if ksize < 3 or ksize % 2 == 0:
        return None
    return lambda x: kornia.filters.median_blur(x, ksize, "replicate")


def _filter(
    src: Image, ddepth: int, kernel: Any, anchor: Any, delta: float, borderType: int, **_: Any
) -> Callable[[Tensor], Tensor] | None:
    weights = torch.from_numpy(np.asarray(kernel, np.float32))[None]
    border = _border(src, borderType, weights.shape[2], weights.shape[1])
    is_plain = ddepth in {-1, cv2.CV_8U} and tuple(anchor) == (-1, -1) and delta == 0
    if border is None or not is_plain:
        return None
    return lambda x: kornia.filters.filter2d(x, weights.to(x.device), border)


def _colour(src: Image, code: int, **_: Any) -> Callable[[Tensor], Tensor] | None:
    return _COLOURS.get(code) if src.channels == 3 else None


def _from_rgb(
    convert: Callable[[Tensor], Tensor], scales: tuple[float, ...], offsets: tuple[float, ...]
) -> Callable[[Tensor], Tensor]:
    """Return a conversion from BGR to a space whose bytes are scaled as OpenCV scales them."""

    def run(x: Tensor) -> Tensor:
        scale, offset = (x.new_tensor(each)[:, None, None] for each in (scales, offsets))
        return (convert(x.flip(1)) * scale + offset) / 255

    return run


_COLOURS: dict[int, Callable[[Tensor], Tensor]] = {
    cv2.COLOR_BGR2RGB: kornia.color.bgr_to_rgb,
    cv2.COLOR_BGR2GRAY: kornia.color.bgr_to_grayscale,
    cv2.COLOR_BGR2HSV: _from_rgb(kornia.color.rgb_to_hsv, (_DEGREES, 255, 255), (0, 0, 0)),
    cv2.COLOR_BGR2Lab: _from_rgb(kornia.color.rgb_to_lab, (2.55, 1, 1), (0, 128, 128)),
    cv2.COLOR_BGR2YUV: _from_rgb(kornia.color.rgb_to_yuv, (255, 255, 255), (0, 128, 128)),
}

resize: Operation = _operation("resize", _resize)
cvtColor: Operation = _operation("cvtColor", _colour)
warpAffine: Operation = _operation("warpAffine", _warp)
warpPerspective: Operation = _operation("warpPerspective", _warp)
GaussianBlur: Operation = _operation("GaussianBlur", _gaussian)
blur: Operation = _operation("blur", _box)
medianBlur: Operation = _operation("medianBlur", _median)
filter2D: Operation = _operation("filter2D", _filter)
