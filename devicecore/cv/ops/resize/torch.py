"""`cv2.resize` on torch tensors."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import cv2
import numpy as np
import torch

from devicecore.cv.arguments import whole
from devicecore.cv.environment import environment
from devicecore.cv.operation import operation
from devicecore.cv.ops.resize import tables as resize_tables
from devicecore.cv.ops.resize.tables import Axis
from devicecore.cv.plan import Plan
from devicecore.cv.result_rules import scaled_to
from devicecore.cv.table import Table
from devicecore.cv.torch_support.dtypes import MOVABLE, saturate, unsigned_as_signed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from devicecore.cv.image import Image

    Tensor = torch.Tensor
    Run = Callable[[Tensor], Tensor]

_EPSILON = 2.220446049250313e-16
# Beyond these sizes OpenCV's own indices overflow.
_LARGEST = 32767
# Means of four bytes are rounded up in loops of vectors, which only these channels have, and else
# half to even.
ROUNDED_UP = frozenset({1, 3, 4})


def examples() -> Iterator[tuple[tuple[Any, ...], dict[str, Any]]]:
    """Yield small calls of every kind."""
    chance = np.random.default_rng(5)
    image = chance.integers(0, 256, (24, 36, 3), np.uint8)
    for flag in _PLANNERS:
        for target in ((17, 13), (18, 12), (12, 8), (50, 31)):
            yield (image, target), {"interpolation": flag}
        for channels in (1, 2, 4, 5, 8):
            own = chance.integers(0, 256, (6, 8, channels), np.uint8)
            for target in ((4, 3), (2, 2), (8, 6), (3, 5), (1, 1)):
                yield (own, target), {"interpolation": flag}
            yield (own[:1, :1], (3, 2)), {"interpolation": flag}
            yield (own[1:, 1:], (3, 2)), {"interpolation": flag}  # with gaps between its rows


def _size(image: Image, given: Mapping[str, Any]) -> tuple[int, int]:
    axes = axes_of(image, given["dsize"], given["fx"], given["fy"])
    assert axes is not None  # there is a plan
    return axes[0].target, axes[1].target


@operation("src", examples=examples, result=scaled_to(_size))
def resize(
    src: Image,
    dsize: Any,
    dst: Any = None,  # noqa: ARG001 - whoever calls kernels fills it
    fx: float = 0,
    fy: float = 0,
    interpolation: int = cv2.INTER_LINEAR,
) -> Plan | None:
    """Plan one call of ``cv2.resize``."""
    axes = axes_of(src, dsize, fx, fy)
    if axes is None:
        return None
    if src.size == tuple(each.target for each in axes):
        return Plan(torch.clone)
    planner = _PLANNERS.get(whole(interpolation))
    return planner(src, *axes) if planner else None


def axes_of(src: Image, dsize: Any, fx: float, fy: float) -> tuple[Axis, Axis] | None:
    """Return what becomes of the width and of the height, or None where OpenCV has to judge."""
    axes = _axes(src, dsize, fx, fy)
    if axes is None or not all(0 < each.target <= _LARGEST >= each.source > 0 for each in axes):
        return None
    return axes


def _axes(src: Image, dsize: Any, fx: float, fy: float) -> tuple[Axis, Axis] | None:
    if dsize is not None:
        width, height = map(whole, dsize)
        if width or height:
            return (
                Axis(src.width, width, width / src.width),
                Axis(src.height, height, height / src.height),
            )
    # Rounded half to even.
    return Axis(src.width, round(src.width * fx), fx), Axis(src.height, round(src.height * fy), fy)


def _halves(columns: Axis, rows: Axis) -> bool:
    return abs(columns.step - 2) < _EPSILON and abs(rows.step - 2) < _EPSILON


def _picked(table: Callable[[Axis], Any], src: Image, columns: Axis, rows: Axis) -> Plan | None:
    if src.dtype not in MOVABLE:
        return None
    down, across = Table(table(rows)), Table(table(columns))

    def run(images: Tensor) -> Tensor:
        plain = unsigned_as_signed(images)
        result = plain.index_select(1, down.on(plain)).index_select(2, across.on(plain))
        return result.view(images.dtype)

    return Plan(run)


def _nearest_exact(src: Image, columns: Axis, rows: Axis) -> Plan | None:
    if not environment().has_float_warps:  # OpenCV 4 has another rule
        return None
    return _picked(resize_tables.nearest_exact, src, columns, rows)


def _linear(src: Image, columns: Axis, rows: Axis) -> Plan | None:
    if src.dtype == "uint8":
        if _halves(columns, rows):
            return _by_cells(src, columns, rows)
        across = resize_tables.clamp_positions(*resize_tables.center_positions(columns), columns)
        return Plan(_linear_fixed(src, across, resize_tables.center_positions(rows)))
    if src.dtype in {"uint16", "float32"}:
        weights = resize_tables.linear_pair
        return Plan(_float_taps(src, columns, rows, weights, torch.float32), "tolerance")
    return None


def _linear_fixed(src: Image, horizontal: Any, vertical: Any) -> Run:
    (left, right_share), (top, low_share) = horizontal, vertical
    beside = Table(np.stack([left, np.minimum(left + 1, src.width - 1)]))
    below = Table(np.stack([top, top + 1]).clip(0, src.height - 1))
    across = Table(resize_tables.fixed_point(resize_tables.linear_pair(right_share)))
    down = Table(resize_tables.fixed_point(resize_tables.linear_pair(low_share)))

    def run(images: Tensor) -> Tensor:
        x = images.to(torch.int32)
        (first, second), a = beside.on(x), across.on(x)[..., None]
        sums = x.index_select(2, first) * a[:, 0] + x.index_select(2, second) * a[:, 1]
        sums.bitwise_right_shift_(4)
        (first, second), b = below.on(x), down.on(x)[:, :, None, None]
        upper = (sums.index_select(1, first) * b[:, 0]).bitwise_right_shift_(16)
        lower = (sums.index_select(1, second) * b[:, 1]).bitwise_right_shift_(16)
        return (upper + lower + 2).bitwise_right_shift_(2).to(torch.uint8)

    return run


def _linear_exact(src: Image, columns: Axis, rows: Axis) -> Plan | None:
    if src.dtype != "uint8":
        return _linear(src, columns, rows) if src.dtype == "float32" else None
    if _halves(columns, rows) and src.channels != 2:
        return _by_cells(src, columns, rows)
    beside, across = map(Table, resize_tables.linear_exact(columns))
    below, down = map(Table, resize_tables.linear_exact(rows))

    def run(images: Tensor) -> Tensor:
        x = images.to(torch.int32)
        left, a = beside.on(x), across.on(x)[..., None]
        right = (left + 1).clamp_(max=src.width - 1)
        sums = x.index_select(2, left) * a[:, 0] + x.index_select(2, right) * a[:, 1]
        top, b = below.on(x), down.on(x)[:, :, None, None]
        low = (top + 1).clamp_(max=src.height - 1)
        total = sums.index_select(1, top) * b[:, 0] + sums.index_select(1, low) * b[:, 1]
        return (total + (1 << 15)).bitwise_right_shift_(16).to(torch.uint8)

    return Plan(run)


def _area(src: Image, columns: Axis, rows: Axis) -> Plan | None:
    if src.dtype != "uint8" or src.channels > 4:
        return None
    if columns.step < 1 or rows.step < 1:
        across = resize_tables.clamp_positions(*resize_tables.growing_cells(columns), columns)
        return Plan(_linear_fixed(src, across, resize_tables.growing_cells(rows)))
    nearest = round(columns.step), round(rows.step)
    if max(abs(columns.step - nearest[0]), abs(rows.step - nearest[1])) < _EPSILON:
        return _by_cells(src, columns, rows)
    tables = (*resize_tables.shrinking_cells(columns), *resize_tables.shrinking_cells(rows))
    return Plan(_by_tables(*map(Table, tables)))


def _by_cells(src: Image, columns: Axis, rows: Axis) -> Plan:
    """Plan the means of cells of whole pixels; the last ones may be cut by the border."""
    across, down = round(columns.step), round(rows.step)
    high, wide = rows.target, columns.target
    over = (wide * across - src.width, high * down - src.height)
    is_rounded_up = across == down == 2 and src.channels in ROUNDED_UP
    share = float(np.float32(1) / np.float32(across * down))
    counts = Table(np.outer(_counts(rows, down), _counts(columns, across))[..., None])

    def run(images: Tensor) -> Tensor:
        x = images.to(torch.int32)
        if over != (0, 0):
            x = torch.nn.functional.pad(x, (0, 0, 0, over[0], 0, over[1]))
        cells = x.view(len(x), high, down, wide, across, src.channels)
        sums = cells.sum((2, 4), dtype=torch.int32)
        if is_rounded_up:
            whole = (sums + 2).bitwise_right_shift_(2).to(torch.uint8)
        else:
            whole = saturate(sums.to(torch.float32) * share, torch.uint8)
        if over == (0, 0):
            return whole
        cut = saturate(sums.to(torch.float32) / counts.on(x), torch.uint8)
        return torch.where(counts.on(x) == across * down, whole, cut)

    return Plan(run)


def _counts(axis: Axis, factor: int) -> Any:
    """Return how many pixels the cells of one axis have."""
    starts = np.arange(axis.target) * factor
    return np.minimum(starts + factor, axis.source).astype(np.float32) - starts.astype(np.float32)


def _by_tables(columns: Table, across: Table, rows: Table, down: Table) -> Run:
    """Return sums by weight in float32, first along rows, each product rounded by itself."""

    def run(images: Tensor) -> Tensor:
        x = images.to(torch.float32)
        sums = _summed(x, 2, columns.on(x), across.on(x)[:, :, None])
        return saturate(_summed(sums, 1, rows.on(x), down.on(x)[:, :, None, None]), torch.uint8)

    return run


def _summed(x: Tensor, axis: int, index: Tensor, weights: Tensor) -> Tensor:
    total = x.index_select(axis, index[:, 0]).mul_(weights[:, 0])
    for place in range(1, index.shape[1]):
        total += x.index_select(axis, index[:, place]).mul_(weights[:, place])
    return total


def _taps(left: Any, count: int, source: int) -> Any:
    """Return the pixels that *count* weights fall on, of shape (pixels, count)."""
    return (left[:, None] + np.arange(1 - count // 2, 1 + count // 2)).clip(0, source - 1)


def _lanczos4(src: Image, columns: Axis, rows: Axis) -> Plan | None:
    if src.dtype != "uint8":
        return None
    run = _fixed_taps(src, columns, rows, resize_tables.lanczos4)
    return Plan(
        lambda images: saturate((run(images) + (1 << 21)).bitwise_right_shift_(22), torch.uint8)
    )


def _cubic(src: Image, columns: Axis, rows: Axis) -> Plan | None:
    if src.dtype not in {"uint8", "uint16", "float32"}:
        return None
    promise: Any = "lsb1" if src.dtype == "uint8" else "tolerance"
    kind = torch.float64 if src.has_float64 else torch.float32
    return Plan(_float_taps(src, columns, rows, resize_tables.cubic, kind), promise)


def _tables(
    src: Image, columns: Axis, rows: Axis, weights: Callable[[Any], Any]
) -> tuple[Any, Any, Any, Any]:
    """Return pixels and weights along rows, then along columns."""
    left, beside = resize_tables.center_positions(columns)
    top, below = resize_tables.center_positions(rows)
    across, down = weights(beside), weights(below)
    count = across.shape[1]
    return _taps(left, count, src.width), across, _taps(top, count, src.height), down


def _fixed_taps(src: Image, columns: Axis, rows: Axis, weights: Callable[[Any], Any]) -> Run:
    beside, across, below, down = _tables(src, columns, rows, weights)
    places = Table(beside), Table(below)
    shares = Table(resize_tables.fixed_point(across)), Table(resize_tables.fixed_point(down))

    def run(images: Tensor) -> Tensor:
        x = images.to(torch.int32)
        sums = _summed(x, 2, places[0].on(x), shares[0].on(x)[:, :, None])
        return _summed(sums, 1, places[1].on(x), shares[1].on(x)[:, :, None, None])

    return run


def _float_taps(
    src: Image, columns: Axis, rows: Axis, weights: Callable[[Any], Any], kind: torch.dtype
) -> Run:
    beside, across, below, down = _tables(src, columns, rows, weights)
    places, shares = (Table(beside), Table(below)), (_in_type(across, kind), _in_type(down, kind))

    def run(images: Tensor) -> Tensor:
        x = images.to(kind)
        sums = _summed(x, 2, places[0].on(x), shares[0].on(x)[:, :, None])
        total = _summed(sums, 1, places[1].on(x), shares[1].on(x)[:, :, None, None])
        return saturate(total, images.dtype)

    return run


def _in_type(weights: Any, kind: torch.dtype) -> Table:
    """Return weights in float32, as OpenCV has them, or the same ones in a wider type."""
    return Table(weights.astype(np.float64 if kind is torch.float64 else np.float32))


_PLANNERS: dict[int, Callable[[Image, Axis, Axis], Plan | None]] = {
    cv2.INTER_NEAREST: partial(_picked, resize_tables.nearest),
    cv2.INTER_NEAREST_EXACT: _nearest_exact,
    cv2.INTER_LINEAR: _linear,
    cv2.INTER_LINEAR_EXACT: _linear_exact,
    cv2.INTER_AREA: _area,
    cv2.INTER_LANCZOS4: _lanczos4,
    cv2.INTER_CUBIC: _cubic,
}
