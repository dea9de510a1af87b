"""`cv2.erode`, `dilate` and `morphologyEx` on torch tensors."""

from __future__ import annotations

import sys
from collections import defaultdict
from typing import TYPE_CHECKING, Any

import cv2
import numpy as np
import torch
from attrs import frozen

from devicecore.cv.arguments import constant
from devicecore.cv.operation import operation
from devicecore.cv.plan import Plan
from devicecore.cv.torch_support.dtypes import saturate
from devicecore.cv.torch_support.windows import FILTER_BORDERS, Window, window

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from devicecore.cv.image import Image

    Tensor = torch.Tensor
    Run = Callable[[Tensor], Tensor]

_TYPES = frozenset({"uint8", "uint16", "int16", "float32", "float64"})
# What OpenCV takes for "a border that changes nothing".
_NO_VALUE = (sys.float_info.max,) * 4
_LARGEST_KERNEL = 127
_LARGEST_GROWN = 2047  # by iterations


def _kernels() -> Iterator[Any]:
    yield None
    yield np.ones((3, 4), np.uint8)
    yield cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (5, 5))


def examples() -> Iterator[tuple[tuple[Any, ...], dict[str, Any]]]:
    """Yield small calls of every kind of ``cv2.erode`` and ``cv2.dilate``."""
    chance = np.random.default_rng(1)
    for dtype in ("uint8", "uint16", "int16", "float32"):
        image = chance.integers(0, 256, (11, 13, 3)).astype(dtype)
        for kernel in _kernels():
            yield (image, kernel), {}
            yield (image, kernel), {"iterations": 2, "borderType": cv2.BORDER_REFLECT_101}
            yield (image, kernel), {"borderValue": (10, 200, 90.5, 0)}


def combined_examples() -> Iterator[tuple[tuple[Any, ...], dict[str, Any]]]:
    """Yield small calls of every kind of ``cv2.morphologyEx``."""
    for (image, kernel), named in examples():
        for kind in _KINDS:
            yield (image, kind, kernel), named


@frozen(eq=False)
class _Element:
    """What the extreme of is taken around each pixel.

    Attributes:
        area: Its window.
        runs: The pixels that belong to it: a row and a column, by the length of such runs.
        is_rectangle: Whether all of them do.
        repeats: How often it is done.
        border_type: What stands outside of an image.
        values: The constant border's, for each channel; None for what changes nothing.
    """

    area: Window
    runs: Mapping[int, Sequence[tuple[int, int]]]
    is_rectangle: bool
    repeats: int
    border_type: int
    values: tuple[float, ...] | None


@operation("src", examples=examples)
def erode(
    src: Image,
    kernel: Any,
    dst: Any = None,  # noqa: ARG001 - whoever calls kernels fills it
    anchor: Any = (-1, -1),
    iterations: int = 1,
    borderType: int = cv2.BORDER_CONSTANT,
    borderValue: Any = _NO_VALUE,
) -> Plan | None:
    """Plan one call of ``cv2.erode``."""
    element = _element(src, kernel, anchor, iterations, borderType, borderValue)
    return None if element is None else Plan(_extremes(element, src, torch.minimum))


@operation("src", examples=examples)
def dilate(
    src: Image,
    kernel: Any,
    dst: Any = None,  # noqa: ARG001 - whoever calls kernels fills it
    anchor: Any = (-1, -1),
    iterations: int = 1,
    borderType: int = cv2.BORDER_CONSTANT,
    borderValue: Any = _NO_VALUE,
) -> Plan | None:
    """Plan one call of ``cv2.dilate``."""
    element = _element(src, kernel, anchor, iterations, borderType, borderValue)
    return None if element is None else Plan(_extremes(element, src, torch.maximum))


@operation("src", examples=combined_examples)
def morphologyEx(
    src: Image,
    op: int,
    kernel: Any,
    dst: Any = None,  # noqa: ARG001 - whoever calls kernels fills it
    anchor: Any = (-1, -1),
    iterations: int = 1,
    borderType: int = cv2.BORDER_CONSTANT,
    borderValue: Any = _NO_VALUE,
) -> Plan | None:
    """Plan one call of ``cv2.morphologyEx``."""
    combine = _KINDS.get(op)
    element = _element(src, kernel, anchor, iterations, borderType, borderValue)
    if combine is None or element is None:
        return None
    low, high = (_extremes(element, src, each) for each in (torch.minimum, torch.maximum))
    return Plan(lambda images: combine(images, low, high))


def _values(src: Image, border_type: int, border_value: Any) -> tuple[float, ...] | None:
    """Return the constant border's values, for each channel; None for what changes nothing.

    Raises:
        TypeError: OpenCV takes no such value.
        ValueError: It is one for OpenCV to judge.
    """
    if border_type != cv2.BORDER_CONSTANT or border_value in {None, _NO_VALUE}:
        return None
    # For channels that a tuple has no number for, OpenCV keeps what changes nothing.
    if isinstance(border_value, tuple) and len(border_value) < min(src.channels, 4):
        raise ValueError(border_value)
    return constant(border_value, src.channels, src.dtype)


def _element(
    src: Image, kernel: Any, anchor: Any, iterations: int, border_type: int, border_value: Any
) -> _Element | None:
    if src.dtype not in _TYPES or src.pixels == 0 or border_type not in FILTER_BORDERS:
        return None
    if type(iterations) is not int or iterations < 0:
        return None
    values = _values(src, border_type, border_value)
    if kernel is None and anchor != (-1, -1):  # which OpenCV leaves out, but not everywhere
        return None
    array = np.ones((3, 3), np.uint8) if kernel is None else kernel
    if not isinstance(array, np.ndarray) or array.dtype != np.uint8 or array.ndim != 2:
        return None
    height, width = array.shape
    largest = max(height, width)
    if not array.any() or largest > _LARGEST_KERNEL or largest * iterations > _LARGEST_GROWN:
        return None
    area = window((width, height), anchor)
    is_rectangle = bool(array.all())
    if is_rectangle and iterations > 1:  # done at once, which differs at borders
        grown = (width - 1) * iterations + 1, (height - 1) * iterations + 1
        area = window(grown, (area.left * iterations, area.top * iterations))
        array, iterations = np.ones((area.height, area.width), np.uint8), 1
    return _Element(area, _runs(array), is_rectangle, iterations, border_type, values)


def _runs(array: np.ndarray[Any, Any]) -> Mapping[int, Sequence[tuple[int, int]]]:
    result: defaultdict[int, list[tuple[int, int]]] = defaultdict(list)
    for top, row in enumerate(array):
        edges = np.flatnonzero(np.diff(row != 0, prepend=False, append=False)).tolist()
        for start, stop in zip(edges[::2], edges[1::2], strict=True):
            result[stop - start].append((top, start))
    return result


def _extremes(element: _Element, src: Image, pick: Callable[[Tensor, Tensor], Tensor]) -> Run:
    """Return what takes the least or the greatest values around pixels."""
    own: torch.dtype = getattr(torch, src.dtype)
    limits = torch.finfo(own) if own.is_floating_point else torch.iinfo(own)
    outside: Any = element.values
    if outside is None:
        outside = limits.max if pick is torch.minimum else limits.min
    work = torch.int32 if own is torch.uint16 else own
    area = element.area

    def run(images: Tensor) -> Tensor:
        result = images
        for _ in range(element.repeats):
            x = area.around(result, element.border_type, outside).to(work)
            if element.is_rectangle:
                x = _along(_along(x, 2, area.width, pick), 1, area.height, pick)
            else:
                x = _over(x, element, result.shape, pick)
            result = x.to(own)
        return result.clone() if result is images else result

    return run


def _along(x: Tensor, axis: int, size: int, pick: Callable[[Tensor, Tensor], Tensor]) -> Tensor:
    """Return extremes of *size* neighbours along an axis, doubling what is known of them."""
    covered = 1
    while covered < size:
        step = min(covered, size - covered)
        rest = x.shape[axis] - step
        x = pick(x.narrow(axis, 0, rest), x.narrow(axis, step, rest))
        covered += step
    return x


def _over(
    x: Tensor,
    element: _Element,
    shape: torch.Size,
    pick: Callable[[Tensor, Tensor], Tensor],
) -> Tensor:
    """Return extremes of the pixels that belong to an element."""
    _, height, width, _ = shape
    result = None
    for length, places in element.runs.items():
        long = _along(x, 2, length, pick)
        for top, left in places:
            part = long[:, top : top + height, left : left + width]
            result = part if result is None else pick(result, part)
    assert result is not None  # an element without pixels is not planned
    return result


def _difference(a: Tensor, b: Tensor) -> Tensor:
    if a.dtype.is_floating_point:
        return a - b
    return saturate(a.to(torch.int32) - b.to(torch.int32), a.dtype)


_KINDS: dict[int, Callable[[Tensor, Run, Run], Tensor]] = {
    cv2.MORPH_ERODE: lambda x, low, _: low(x),
    cv2.MORPH_DILATE: lambda x, _, high: high(x),
    cv2.MORPH_OPEN: lambda x, low, high: high(low(x)),
    cv2.MORPH_CLOSE: lambda x, low, high: low(high(x)),
    cv2.MORPH_GRADIENT: lambda x, low, high: _difference(high(x), low(x)),
    cv2.MORPH_TOPHAT: lambda x, low, high: _difference(x, high(low(x))),
    cv2.MORPH_BLACKHAT: lambda x, low, high: _difference(low(high(x)), x),
}
