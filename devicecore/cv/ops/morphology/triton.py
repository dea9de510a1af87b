"""`cv2.erode`, `dilate` and `morphologyEx` by a Triton kernel: bytes, and small elements."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import cv2
import numpy as np

from devicecore.cv.operation import Operation
from devicecore.cv.ops.arithmetic import triton as arithmetic_triton
from devicecore.cv.ops.morphology import kernels
from devicecore.cv.ops.morphology import torch as morphology_torch
from devicecore.cv.plan import Plan
from devicecore.cv.torch_support.windows import Window, window
from devicecore.cv.triton_support.strips import example, fits, strips

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import torch

    from devicecore.cv.image import Image

    Run = Callable[[torch.Tensor], torch.Tensor]
    Element = tuple[np.ndarray[Any, Any], Window, int]

# Each element is compiled for, and all its rows are kept in registers.
_LARGEST = 15
_BORDERS = frozenset({cv2.BORDER_CONSTANT, cv2.BORDER_REPLICATE})


def _examples() -> Iterator[tuple[tuple[Any, ...], dict[str, Any]]]:
    ellipse = cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (5, 5))
    yield (example(3), None), {}
    yield (example(1)[:7, :23].copy(), np.ones((3, 4), np.uint8)), {}
    yield (example(4), ellipse), {"iterations": 2}


def _combined_examples() -> Iterator[tuple[tuple[Any, ...], dict[str, Any]]]:
    for kind in _KINDS:
        yield (example(3), kind, None), {}


def _operation(name: str, *, is_greatest: bool) -> Operation:
    known: Operation = getattr(morphology_torch, name)

    @functools.wraps(known.planner)
    def planner(
        src: Image,
        kernel: Any,
        dst: Any = None,
        anchor: Any = (-1, -1),
        iterations: int = 1,
        borderType: int = cv2.BORDER_CONSTANT,
        *args: Any,
        **kwargs: Any,
    ) -> Plan | None:
        plan = known.planner(src, kernel, dst, anchor, iterations, borderType, *args, **kwargs)
        if plan is None or not fits(src) or args or kwargs:  # a border's value
            return None
        element = _element(kernel, anchor, iterations, borderType)
        return None if element is None else _extremes(src, element, is_greatest=is_greatest)

    return Operation(name, "triton", planner, known.images, _examples)


@functools.wraps(morphology_torch.morphologyEx.planner)
def _combined(
    src: Image,
    op: int,
    kernel: Any,
    dst: Any = None,
    anchor: Any = (-1, -1),
    iterations: int = 1,
    borderType: int = cv2.BORDER_CONSTANT,
    *args: Any,
    **kwargs: Any,
) -> Plan | None:
    known = morphology_torch.morphologyEx.planner
    plan = known(src, op, kernel, dst, anchor, iterations, borderType, *args, **kwargs)
    difference = arithmetic_triton.subtract.planner(src, src)
    if plan is None or difference is None or not fits(src) or args or kwargs:
        return None
    element = _element(kernel, anchor, iterations, borderType)
    if element is None:
        return None
    low = _extremes(src, element, is_greatest=False).run
    high = _extremes(src, element, is_greatest=True).run
    combine, subtract = _KINDS[op], difference.run
    return Plan(lambda images: combine(images, low, high, subtract))


def _element(kernel: Any, anchor: Any, iterations: int, border_type: int) -> Element | None:
    """Return the pixels of an element, their window, and how often extremes of them are taken."""
    array = np.ones((3, 3), np.uint8) if kernel is None else kernel
    height, width = array.shape
    area = window((width, height), anchor)
    if array.all() and iterations > 1:  # done at once, as OpenCV does
        grown = (width - 1) * iterations + 1, (height - 1) * iterations + 1
        area = window(grown, (area.left * iterations, area.top * iterations))
        array, iterations = np.ones((area.height, area.width), np.uint8), 1
    if iterations < 1 or max(area.width, area.height) > _LARGEST or border_type not in _BORDERS:
        return None
    if not array.any(1).all():  # rows without pixels
        return None
    if border_type == cv2.BORDER_CONSTANT and not _reaches_inwards(array != 0, area):
        return None
    return array, area, iterations


def _reaches_inwards(array: np.ndarray[Any, Any], area: Window) -> bool:
    """Return whether pixels outside of an image may be taken for those at its border.

    That is so where these belong to the element as well: each pixel of it with all those between
    it and the anchor's row, and the anchor's column.
    """
    for axis, place in ((0, area.top), (1, area.left)):
        before, after = np.split(array, [place], axis)
        inwards = np.diff(before.astype(np.int8), axis=axis) < 0
        outwards = np.diff(after.astype(np.int8), axis=axis) > 0
        if inwards.any() or outwards.any():
            return False
        if before.shape[axis] and (before.take(-1, axis) & ~after.take(0, axis)).any():
            return False
    return True


def _extremes(src: Image, element: Element, *, is_greatest: bool) -> Plan:
    array, area, repeats = element
    rows = [sum(1 << place for place in np.flatnonzero(row).tolist()) for row in array]
    lines = tuple(dict.fromkeys(rows))
    settings = lines, tuple(map(lines.index, rows)), area.left, area.width, is_greatest
    constants = {"SETTINGS": settings, "TOP": area.top}
    sides = area.left * src.channels, (area.width - 1 - area.left) * src.channels
    tall, values = area.height, 2 * len(lines)
    once = strips(kernels.extremes, src, sides, tall, constants, values=values)
    if repeats == 1:
        return once

    def run(images: torch.Tensor) -> torch.Tensor:
        for _ in range(repeats):
            images = once.run(images)
        return images

    return Plan(run)


_KINDS: dict[int, Callable[[torch.Tensor, Run, Run, Callable[..., torch.Tensor]], torch.Tensor]] = {
    cv2.MORPH_ERODE: lambda x, low, _, __: low(x),
    cv2.MORPH_DILATE: lambda x, _, high, __: high(x),
    cv2.MORPH_OPEN: lambda x, low, high, _: high(low(x)),
    cv2.MORPH_CLOSE: lambda x, low, high, _: low(high(x)),
    cv2.MORPH_GRADIENT: lambda x, low, high, minus: minus(high(x), low(x)),
    cv2.MORPH_TOPHAT: lambda x, low, high, minus: minus(x, high(low(x))),
    cv2.MORPH_BLACKHAT: lambda x, low, high, minus: minus(low(high(x)), x),
}
erode: Operation = _operation("erode", is_greatest=False)
dilate: Operation = _operation("dilate", is_greatest=True)
morphologyEx: Operation = Operation(
    "morphologyEx", "triton", _combined, morphology_torch.morphologyEx.images, _combined_examples
)
