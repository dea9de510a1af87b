"""`cv2.resize` of uint8 by Triton kernels."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import cv2
import numpy as np
from attrs import evolve

from devicecore.cv.operation import Operation
from devicecore.cv.ops.resize import kernels
from devicecore.cv.ops.resize import tables as resize_tables
from devicecore.cv.ops.resize import torch as resize_torch
from devicecore.cv.table import Table
from devicecore.cv.triton_support.alignment import GROUP
from devicecore.cv.triton_support.gather import fits, plan_gather
from devicecore.cv.triton_support.launch import Launch
from devicecore.cv.triton_support.launch_plan import plan_launch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    import torch

    from devicecore.cv.image import Image
    from devicecore.cv.ops.resize.tables import Axis
    from devicecore.cv.plan import Plan

    Array = np.ndarray[Any, Any]

_BLOCK, _WARPS = 128, 4
# Words that one thread reads for means of cells.
_MOST_WORDS = 128


def _examples() -> Iterator[tuple[tuple[Any, ...], dict[str, Any]]]:
    chance = np.random.default_rng(5)
    image = chance.integers(0, 256, (24, 36, 3), np.uint8)
    for flag in _KINDS:
        for target in ((17, 13), (18, 12), (12, 8)):
            yield (image, target), {"interpolation": flag}
    for channels in (1, 2, 4, 5, 8):
        image = chance.integers(0, 256, (24, 48, channels), np.uint8)
        for target in ((50, 31), (24, 12)):
            yield (image, target), {}


@functools.wraps(resize_torch.resize.planner)
def _plan(
    src: Image,
    dsize: Any,
    dst: Any = None,
    fx: float = 0,
    fy: float = 0,
    interpolation: int = cv2.INTER_LINEAR,
) -> Plan | None:
    known = resize_torch.resize.planner(src, dsize, dst, fx, fy, interpolation)
    axes = resize_torch.axes_of(src, dsize, fx, fy)
    kind = _KINDS.get(interpolation)
    if known is None or axes is None or kind is None or src.dtype != "uint8":
        return None
    columns, rows = axes
    if src.size == (columns.target, rows.target) or not fits(src, columns.target, rows.target):
        return None
    result = kind(src, columns, rows)
    return None if result is None else evolve(result, promise=known.promise)


def _nearest(
    src: Image, columns: Axis, rows: Axis, *, pixels: Callable[[Axis], Array]
) -> Plan | None:
    return plan_gather(src, pixels(columns), pixels(rows))


def _linear(src: Image, columns: Axis, rows: Axis) -> Plan | None:
    if _factors(columns, rows) == (2, 2):
        return _cells(src, columns, rows)
    across = resize_tables.clamp_positions(*resize_tables.center_positions(columns), columns)
    return _between_two(src, across, resize_tables.center_positions(rows))


def _area(src: Image, columns: Axis, rows: Axis) -> Plan | None:
    if columns.step < 1 or rows.step < 1:
        across = resize_tables.clamp_positions(*resize_tables.growing_cells(columns), columns)
        return _between_two(src, across, resize_tables.growing_cells(rows))
    if _factors(columns, rows):
        return _cells(src, columns, rows)
    return _taps(
        src, resize_tables.shrinking_cells(columns), resize_tables.shrinking_cells(rows), 0
    )


def _linear_exact(src: Image, columns: Axis, rows: Axis) -> Plan | None:
    if _factors(columns, rows) == (2, 2) and src.channels != 2:
        return _cells(src, columns, rows)
    (left, across), (top, down) = map(resize_tables.linear_exact, (columns, rows))
    places = (np.stack([each, each + 1], axis=1) for each in (left, top))
    return _taps(src, (next(places), across), (next(places), down), 16)


def _between_taps(
    src: Image, columns: Axis, rows: Axis, *, weights: Callable[[Array], Array], bits: int
) -> Plan | None:
    tables = []
    for axis in (columns, rows):
        left, beside = resize_tables.center_positions(axis)
        shares = weights(beside)
        count = shares.shape[1]
        places = left[:, None] + np.arange(1 - count // 2, 1 + count // 2)
        kept = resize_tables.fixed_point(shares) if bits else shares.astype(np.float64)
        tables.append((places, kept))
    return _taps(src, tables[0], tables[1], bits)


def _factors(columns: Axis, rows: Axis) -> tuple[int, int] | None:
    """Return how many pixels cells have along both axes, or None where that is not whole."""
    result = round(columns.step), round(rows.step)
    off = max(abs(columns.step - result[0]), abs(rows.step - result[1]))
    return result if off < np.finfo(np.float64).eps else None


def _between_two(
    src: Image, horizontal: tuple[Array, Array], vertical: tuple[Array, Array]
) -> Plan | None:
    if src.width == 1:
        return None
    (left, right_share), (top, low_share) = horizontal, vertical
    weights = _fixed_pair(right_share)
    is_last = left == src.width - 1  # which is read as the right one of a pair
    weights[is_last] = weights[is_last, ::-1]
    first = (left - is_last)[:, None] * src.channels
    pair = np.stack([top, top + 1], axis=1).clip(0, src.height - 1) * (src.width * src.channels)
    tables = [(first, weights), (pair, _fixed_pair(low_share))]
    across, down = (np.concatenate(each, axis=1).astype(np.int32) for each in tables)
    return _by_tables(src, kernels.linear, (across, down), {}, (len(top), len(left)), 1)


def _fixed_pair(share: Array) -> Array:
    return resize_tables.fixed_point(resize_tables.linear_pair(share))


def _taps(
    src: Image, horizontal: tuple[Array, Array], vertical: tuple[Array, Array], bits: int
) -> Plan:
    """Return sums by weight; each table is of places, which may be outside, and of weights."""
    (columns, across), (rows, down) = horizontal, vertical
    beside = columns.clip(0, src.width - 1) * src.channels
    below = rows.clip(0, src.height - 1) * (src.width * src.channels)
    tables = (beside.T.astype(np.int32), across.T, below.astype(np.int32), down)
    constants = {"COLUMNS": across.shape[1], "ROWS": down.shape[1], "BITS": bits}
    shape = len(rows), len(columns)
    return _by_tables(src, kernels.taps, tables, constants, shape, src.channels)


def _by_tables(
    src: Image,
    kernel: Any,
    arrays: tuple[Array, ...],
    constants: Mapping[str, Any],
    shape: tuple[int, int],
    lanes: int,
) -> Plan:
    """Return what launches a kernel with tables; each pixel of a result has so many lanes."""
    tables = tuple(Table(np.ascontiguousarray(each)) for each in arrays)
    height, width = shape
    grid = (-(-width * lanes // _BLOCK), height)
    all_constants = {**constants, "CHANNELS": src.channels, "BLOCK": _BLOCK}
    size = src.height * src.width * src.channels

    def launch(count: int, device: torch.device) -> Launch:
        rest = (*(table.there(device) for table in tables), size, width)
        return Launch(kernel, (*grid, count), rest, all_constants, _WARPS)

    return plan_launch(src, (height, width, src.channels), launch)


def _cells(src: Image, columns: Axis, rows: Axis) -> Plan | None:
    """Return means of cells of whole pixels, where four of them are whole words."""
    across, down = round(columns.step), round(rows.step)
    groups = columns.target // GROUP
    size = (GROUP * groups * across, rows.target * down)
    if columns.target % GROUP or src.size != size or across * down * src.channels > _MOST_WORDS:
        return None
    constants = {
        "ACROSS": across,
        "DOWN": down,
        "CHANNELS": src.channels,
        "ROUNDED_UP": across == down == 2 and src.channels in resize_torch.ROUNDED_UP,
        "BLOCK": _BLOCK,
    }
    share = float(np.float32(1) / np.float32(across * down))

    def launch(count: int, _device: torch.device) -> Launch:
        grid = (-(-groups // _BLOCK), rows.target, count)
        return Launch(kernels.cells, grid, (groups, share), constants, _WARPS)

    return plan_launch(src, (rows.target, columns.target, src.channels), launch)


_KINDS: dict[int, Callable[[Image, Axis, Axis], Plan | None]] = {
    cv2.INTER_LINEAR: _linear,
    cv2.INTER_AREA: _area,
    cv2.INTER_NEAREST: functools.partial(_nearest, pixels=resize_tables.nearest),
    cv2.INTER_NEAREST_EXACT: functools.partial(_nearest, pixels=resize_tables.nearest_exact),
    cv2.INTER_LINEAR_EXACT: _linear_exact,
    cv2.INTER_CUBIC: functools.partial(_between_taps, weights=resize_tables.cubic, bits=0),
    cv2.INTER_LANCZOS4: functools.partial(_between_taps, weights=resize_tables.lanczos4, bits=22),
}
resize: Operation = Operation("resize", "triton", _plan, ("src",), _examples)
