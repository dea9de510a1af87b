"""`cv2.matchTemplate` on torch tensors, in float64 where the device has it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import cv2
import numpy as np
import torch

from devicecore.cv.image import Image
from devicecore.cv.operation import operation
from devicecore.cv.ops.box_filter.box_sums import sliding_sum
from devicecore.cv.plan import Plan
from devicecore.cv.result_rules import like

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from devicecore.cv.result_rules import ArrayInfo
    from devicecore.kernels import Exactness

    Tensor = torch.Tensor

_TYPES = frozenset({"uint8", "float32"})
_MOST_CHANNELS = 4
_NORMED = frozenset({cv2.TM_SQDIFF_NORMED, cv2.TM_CCORR_NORMED, cv2.TM_CCOEFF_NORMED})
_DIFFERENCES = frozenset({cv2.TM_SQDIFF, cv2.TM_SQDIFF_NORMED})
_COEFFICIENTS = frozenset({cv2.TM_CCOEFF, cv2.TM_CCOEFF_NORMED})
# What is less than so much of a sum of squares, or than this, is rounding.
_SHARE, _LEAST = 10 * float(np.finfo(np.float32).eps), 0.5
# How many times larger than its template an image is at most.
_MOST_PARTS = 64
# Where a share is a bit more than 1, that is rounding, too.
_BIT = 1.125
_NEAR = float(np.finfo(np.float64).eps)
_METHODS = _NORMED | _DIFFERENCES | _COEFFICIENTS | {cv2.TM_CCORR}


def examples() -> Iterator[tuple[tuple[Any, ...], dict[str, Any]]]:
    """Yield small calls of every kind."""
    image = np.random.default_rng(39).integers(0, 256, (23, 31, 3), np.uint8)
    for method in sorted(_METHODS):
        for dtype in (np.uint8, np.float32):
            picture = image.astype(dtype)
            yield (picture, picture[3:10, 5:10].copy(), method), {}
            plane = picture[..., 0].copy()
            yield (plane, plane[3:10, 5:10].copy(), method), {}


def _places(given: Mapping[str, Any]) -> tuple[ArrayInfo, ...]:
    image, part = given["image"], given["templ"]
    size = image.width - part.width + 1, image.height - part.height + 1
    return (like(image, size=size, channels=1, dtype="float32"),)


@operation("image", "templ", examples=examples, result=_places)
def matchTemplate(
    image: Image,
    templ: Image,
    method: int,
    result: Any = None,  # noqa: ARG001 - whoever calls kernels fills it
    mask: Any = None,
) -> Plan | None:
    """Plan one call of ``cv2.matchTemplate`` without a mask, with the larger image first."""
    if not _fits(image, templ) or mask is not None:
        return None
    if type(method) is not int or method not in _METHODS:
        return None
    # The others are small differences of large sums, which OpenCV has in float32.
    promise: Exactness = "tolerance" if method == cv2.TM_CCORR else "close"
    # In float32, a spectrum's rounding is a share of what the whole image has.
    if not image.has_float64 and image.pixels > _MOST_PARTS * templ.pixels:
        promise = "close"
    work = torch.float64 if image.has_float64 else torch.float32

    def run(images: Tensor, parts: Tensor) -> Tensor:
        wide, part = images.to(work), parts.to(work)
        if method in _COEFFICIENTS:  # which changes nothing but the size of the numbers
            part = part - part.mean((1, 2), keepdim=True)
        found = _correlated(wide, part)
        if method in _DIFFERENCES | _NORMED:
            found = _compared(found, wide, part, method)
        return found.to(torch.float32)[..., None]

    return Plan(run, promise)


def _fits(image: Image, part: Any) -> bool:
    return (
        isinstance(part, Image)
        and part.pixels > 0
        and image.dtype in _TYPES
        and (image.dtype, image.channels) == (part.dtype, part.channels)
        and image.channels <= _MOST_CHANNELS
        and image.height >= part.height
        and image.width >= part.width
    )


def _correlated(images: Tensor, parts: Tensor) -> Tensor:
    """Return the sums of products at every place, of shape (images, rows, columns)."""
    _, height, width, _ = images.shape
    _, high, wide, _ = parts.shape
    spectrum = torch.fft.rfft2(images, dim=(1, 2))
    spectrum = spectrum * torch.fft.rfft2(parts, s=(height, width), dim=(1, 2)).conj()
    found = torch.fft.irfft2(spectrum.sum(3), s=(height, width), dim=(1, 2))
    valid: Tensor = found[:, : height - high + 1, : width - wide + 1]
    return valid


def _compared(result: Tensor, images: Tensor, parts: Tensor, method: int) -> Tensor:
    """Return differences, or shares of what the sums might be."""
    _, high, wide, _ = parts.shape
    squares = _windows(images.square(), high, wide).sum(3)
    own = parts.square().sum((1, 2, 3))[:, None, None]
    if method in _DIFFERENCES:
        result = (squares - 2 * result + own).clamp_(min=0)
    if method not in _NORMED:
        return result
    spread = squares
    if method in _COEFFICIENTS:
        means = _windows(images, high, wide).square().sum(3) / (high * wide)
        spread = (squares - means).clamp_(min=0)
    most = spread.sqrt() * own.sqrt()
    most = torch.where(spread <= (squares * _SHARE).clamp_(max=_LEAST), 0.0, most)
    is_share, is_near = result.abs() < most, result.abs() < most * _BIT
    otherwise = 1.0 if method in _DIFFERENCES else 0.0
    shares = torch.where(is_share, result / most, torch.where(is_near, result.sign(), otherwise))
    if method == cv2.TM_CCOEFF_NORMED:  # a part of one colour is everywhere
        shares = torch.where(own / (high * wide) < _NEAR, 1.0, shares)
    return shares


def _windows(x: Tensor, high: int, wide: int) -> Tensor:
    """Return the sums of all windows of a size."""
    if x.dtype is torch.float32:  # differences of large sums would be nothing but rounding
        result: Tensor = sliding_sum(sliding_sum(x, 1, high), 2, wide)
        return result
    sums = torch.nn.functional.pad(x.cumsum(1).cumsum(2), (0, 0, 1, 0, 1, 0))
    rows = sums[:, high:] - sums[:, :-high]
    return rows[:, :, wide:] - rows[:, :, :-wide]
