"""`cv2.blur` and `cv2.boxFilter` by a Triton kernel: means of uint8 in small windows."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import cv2

from devicecore.cv.operation import Operation
from devicecore.cv.ops.box_filter import torch as box_filter_torch
from devicecore.cv.ops.box_filter.box_sums import inverse
from devicecore.cv.torch_support.windows import window
from devicecore.cv.triton_support.strips import example
from devicecore.cv.triton_support.weighted_sums import plan_weighted_sums

if TYPE_CHECKING:
    from collections.abc import Iterator

    from devicecore.cv.image import Image
    from devicecore.cv.plan import Plan
    from devicecore.cv.torch_support.windows import Window


def _examples() -> Iterator[tuple[tuple[Any, ...], dict[str, Any]]]:
    for channels, size in ((3, (5, 5)), (1, (3, 3)), (4, (2, 4))):
        yield (example(channels), size), {}


def _typed_examples() -> Iterator[tuple[tuple[Any, ...], dict[str, Any]]]:
    for (image, size), named in _examples():
        yield (image, -1, size), named


@functools.wraps(box_filter_torch.blur.planner)
def _blur(
    src: Image,
    ksize: Any,
    dst: Any = None,
    anchor: Any = (-1, -1),
    borderType: int = cv2.BORDER_DEFAULT,
) -> Plan | None:
    plan = box_filter_torch.blur.planner(src, ksize, dst, anchor, borderType)
    return None if plan is None else _mean(src, window(ksize, anchor), borderType)


@functools.wraps(box_filter_torch.boxFilter.planner)
def _box_filter(
    src: Image,
    ddepth: int,
    ksize: Any,
    dst: Any = None,
    anchor: Any = (-1, -1),
    normalize: Any = True,
    borderType: int = cv2.BORDER_DEFAULT,
) -> Plan | None:
    known = box_filter_torch.boxFilter.planner
    plan = known(src, ddepth, ksize, dst, anchor, normalize, borderType)
    if plan is None or not normalize or ddepth not in {-1, cv2.CV_8U}:
        return None
    return _mean(src, window(ksize, anchor), borderType)


def _mean(src: Image, area: Window, border_type: int) -> Plan | None:
    count = area.width * area.height
    if count == 1:
        return None
    factor, added = inverse(count)
    rows, down = [[1] * area.width] * area.height, [1] * area.height
    return plan_weighted_sums(src, rows, down, area, border_type, ("divide", factor, added))


blur: Operation = Operation("blur", "triton", _blur, box_filter_torch.blur.images, _examples)
boxFilter: Operation = Operation(
    "boxFilter", "triton", _box_filter, box_filter_torch.boxFilter.images, _typed_examples
)
