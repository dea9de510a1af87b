"""`cv2.cvtColor` of uint8 by Triton kernels; what a code means is what torch's kernel says."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import cv2
import numpy as np
from attrs import evolve, frozen

from devicecore.cv.environment import environment
from devicecore.cv.operation import Operation
from devicecore.cv.ops.color import lab, lab_inverse, linear
from devicecore.cv.ops.color import torch as color_torch
from devicecore.cv.ops.color.kernels import convert as kernels
from devicecore.cv.ops.color.tables import lab as lab_tables
from devicecore.cv.ops.color.tables import lab_inverse as tables_of_lab
from devicecore.cv.table import Table
from devicecore.cv.triton_support.alignment import groups, is_native
from devicecore.cv.triton_support.launch import Launch
from devicecore.cv.triton_support.launch_plan import plan_launch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import torch

    from devicecore.cv.image import Image
    from devicecore.cv.plan import Plan

_BLOCK, _WARPS = 128, 4  # a group of pixels for each thread
_ORDERS = ("BGR", "RGB", "BGRA", "RGBA")
_IN_FLOATS = frozenset({"from HSV", "HLS", "from HLS"})
_OPAQUE = 4  # in the place of a channel


@frozen
class Conversion:
    """What the kernel is told of a conversion.

    Attributes:
        kind: Its name there.
        numbers: Its weights there.
        read: The places of three channels in the source.
        written: Which of the three results the target consists of.
        vectors: How many columns OpenCV computes at once, where that matters.
        tables: What returns the tables that it reads.
        default: How many channels the target has, where the caller may say 3 or 4; otherwise 0.
    """

    kind: str
    numbers: Any = 0
    read: tuple[int, ...] = (0, 1, 2)
    written: tuple[int, ...] = (0, 1, 2)
    default: int = 0
    vectors: int = 0
    tables: Callable[[], tuple[Table, ...]] = tuple


def _conversions() -> Iterator[tuple[str, Conversion]]:
    for source in _ORDERS:
        for target in _ORDERS:
            written = (0, 1, 2) if source[0] == target[0] else (2, 1, 0)
            yield f"{source}2{target}", Conversion("", written=written, default=len(target))
    for order in _ORDERS:
        read = (0, 1, 2) if order[0] == "B" else (2, 1, 0)
        yield f"{order}2GRAY", Conversion("gray", linear.GRAY, read, (0,))
        yield f"GRAY2{order}", Conversion("", read=(0, 0, 0), default=len(order))
        yield from _hues(order, read)
        for space in ("YCrCb", "YUV"):
            numbers: tuple[int, ...] = (
                *linear.LUMA,
                linear.RED_EXCESS[space],
                linear.BLUE_EXCESS[space],
            )
            places = (0, 1, 2) if space == "YCrCb" else (0, 2, 1)
            yield f"{order}2{space}", Conversion("luma", numbers, read, places)
            back = Conversion("from luma", linear.BACK[space], places, read, 3)
            yield f"{space}2{order}", back
        yield f"{order}2XYZ", Conversion("sums", sum(linear.XYZ, ()), read)
        back = Conversion("sums", sum(linear.FROM_XYZ, ()), written=read, default=3)
        yield f"XYZ2{order}", back
        numbers = (*sum(lab.WEIGHTS, ()), lab.LIGHTNESS, lab.DARKEST)
        yield f"{order}2Lab", Conversion("Lab", numbers, read, tables=_tables_to_lab)
        numbers = sum(lab_inverse.OF_LAB, ())
        back = Conversion("from Lab", numbers, written=read, default=3, tables=_tables_of_lab)
        yield f"Lab2{order}", back


def _hues(order: str, read: tuple[int, ...]) -> Iterator[tuple[str, Conversion]]:
    for full, circle, most in (("", 180, 180), ("_FULL", 256, 255)):
        yield f"{order}2HSV{full}", Conversion("HSV", circle, read)
        sixths = float(np.float32(6) / np.float32(most))
        back = Conversion("from HSV", sixths, written=read, default=3, vectors=32)
        yield f"HSV2{order}{full}", back
        degrees = float(np.float32(circle) / np.float32(360))
        yield f"{order}2HLS{full}", Conversion("HLS", degrees, read, vectors=8)
        yield f"HLS2{order}{full}", Conversion("from HLS", sixths, written=read, default=3)


@functools.cache
def _tables_to_lab() -> tuple[Table, ...]:
    # A root is less than 2**16.
    return (
        Table(lab_tables.linear_light().astype(np.int16)),
        Table(lab_tables.cube_roots().astype(np.uint16)),
    )


@functools.cache
def _tables_of_lab() -> tuple[Table, ...]:
    return (*map(Table, tables_of_lab.lightness()), Table(tables_of_lab.values()))


_CONVERSIONS = {
    getattr(cv2, f"COLOR_{name}"): conversion
    for name, conversion in _conversions()
    if hasattr(cv2, f"COLOR_{name}")
}


# One of each kind: every other order of channels would have to be compiled, too.
_EXAMPLES = {
    "BGR2RGB": 3,
    "BGR2RGBA": 3,
    "RGBA2BGRA": 4,
    "BGRA2GRAY": 4,
    "GRAY2BGR": 1,
    "BGR2HSV": 3,
    "RGB2HSV_FULL": 4,
    "HSV2BGR": 3,
    "BGR2HLS": 3,
    "HLS2BGR": 3,
    "BGR2YCrCb": 3,
    "YUV2RGB": 3,
    "BGR2XYZ": 3,
    "XYZ2BGR": 3,
    "BGR2Lab": 3,
    "Lab2RGB": 3,
}


def _examples() -> Iterator[tuple[tuple[Any, ...], dict[str, Any]]]:
    chance = np.random.default_rng(6)
    for name, channels in _EXAMPLES.items():
        for size in ((6, 44), (3, 5)):
            shape = size if channels == 1 else (*size, channels)
            yield (chance.integers(0, 256, shape, np.uint8), getattr(cv2, f"COLOR_{name}")), {}


@functools.wraps(color_torch.cvtColor.planner)
def _plan(
    src: Image, code: int, dst: Any = None, dstCn: int = 0, hint: int = cv2.ALGO_HINT_DEFAULT
) -> Plan | None:
    plan = color_torch.cvtColor.planner(src, code, dst, dstCn, hint)
    conversion = _CONVERSIONS.get(code)
    if plan is None or conversion is None or src.dtype != "uint8":
        return None
    # Without fused sums or with IPP, some of these round in other ways.
    if conversion.kind in _IN_FLOATS and (plan.promise != "exact" or not environment().has_fma):
        return None
    written = conversion.written
    if conversion.default and (dstCn if dstCn > 0 else conversion.default) == 4:
        written = (*written, 3 if src.channels == 4 else _OPAQUE)
    return evolve(plan_conversion(conversion, src, written), promise=plan.promise)


def plan_conversion(conversion: Conversion, src: Image, written: tuple[int, ...]) -> Plan:
    """Return how images of bytes are converted, of which the target has some channels."""
    in_vectors = src.width // conversion.vectors * conversion.vectors if conversion.vectors else 0
    vectors = "none" if not in_vectors else "all" if in_vectors == src.width else "some"

    def launch(images: int, device: torch.device) -> Launch:
        count = groups(images * src.pixels)
        constants = {
            "CONVERSION": conversion.kind,
            "NUMBERS": conversion.numbers,
            "VECTORS": vectors,
            "READ": conversion.read,
            "WRITTEN": written,
            "FROM": src.channels,
            "NATIVE": is_native(device),
            "BLOCK": _BLOCK,
        }
        tables = [*(table.there(device) for table in conversion.tables()), None, None, None][:3]
        grid = (-(-count // _BLOCK), 1, 1)
        return Launch(
            kernels.convert, grid, (*tables, count, src.width, in_vectors), constants, _WARPS
        )

    return plan_launch(src, (src.height, src.width, len(written)), launch)


cvtColor: Operation = Operation("cvtColor", "triton", _plan, color_torch.cvtColor.images, _examples)
