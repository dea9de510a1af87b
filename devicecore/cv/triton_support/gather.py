"""Gathers pixels by tables of columns and rows, in one Triton kernel."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import numpy as np
from attrs import frozen

from devicecore.cv.table import Table
from devicecore.cv.triton_support.alignment import GROUP
from devicecore.cv.triton_support.kernels.gather import pick
from devicecore.cv.triton_support.launch import Launch
from devicecore.cv.triton_support.launch_plan import plan_launch

if TYPE_CHECKING:
    from collections.abc import Sequence

    import torch

    from devicecore.cv.image import Image
    from devicecore.cv.plan import Plan

    Index = np.ndarray[Any, Any]

_CHANNELS = frozenset({1, 2, 3, 4})
# Of one image, in bytes, and of a grid of programs.
_LARGEST, _MOST_ROWS = 1 << 31, 65535
_BLOCK, _WARPS = 256, 4


@frozen
class _Run:
    """Groups of pixels of a row that lie one after the other in the source.

    Attributes:
        before: Groups before them.
        length: How many they are.
        direction: 1 if they have the source's order, -1 if it is turned round, 0 if there are none.
    """

    before: int = 0
    length: int = 0
    direction: int = 0


def fits(src: Image, width: int, height: int) -> bool:
    """Return whether kernels with a program for each row can make results of that size."""
    if src.dtype != "uint8" or src.channels not in _CHANNELS or height > _MOST_ROWS:
        return False
    return max(src.height * src.width, height * width) * src.channels < _LARGEST


def plan_gather(
    src: Image, columns: Index, rows: Index, values: Sequence[float] = ()
) -> Plan | None:
    """Return how pixels of images of bytes are copied, or None where the kernel cannot.

    Args:
        src: The images.
        columns: For each column of the result, that of its pixel; -1 outside.
        rows: For each row the same.
        values: What pixels outside have in each channel.
    """
    width, height, channels = len(columns), len(rows), src.channels
    if not fits(src, width, height):
        return None
    is_whole = width % GROUP == 0
    run = _longest_run(columns) if is_whole else _Run()
    units = width // GROUP - run.length if is_whole else width
    edges, inner = (-(-each // _BLOCK) for each in (units, run.length))
    value = int.from_bytes(bytes(map(int, values)).ljust(4, b"\0"), "little", signed=True)
    across, down = (
        Table(np.where(each < 0, -1, each * step).astype(np.int32))
        for each, step in ((columns, channels), (rows, src.width * channels))
    )
    start = int(columns[GROUP * run.before]) * channels if run.length else 0
    constants = {
        "CHANNELS": channels,
        "RUN": run.direction,
        "FOUR": is_whole,
        "CONSTANT": bool((columns < 0).any() or (rows < 0).any()),
        "BLOCK": _BLOCK,
    }

    def launch(count: int, device: torch.device) -> Launch:
        tables = across.there(device), down.there(device)
        bytes_ = src.height * src.width * channels
        rest = (*tables, value, bytes_, width, run.before, run.length, start, edges)
        return Launch(pick, (edges + inner, height, count), rest, constants, _WARPS)

    return plan_launch(src, (height, width, channels), launch)


def _longest_run(columns: Index) -> _Run:
    """Return the most groups that lie one after the other, in either direction."""
    steps = np.diff(columns)
    best = _Run()
    for direction in (1, -1):
        # Places where a stretch of such steps ends, and where the next one begins.
        breaks = np.flatnonzero((steps != direction) | (columns[:-1] < 0) | (columns[1:] < 0)) + 1
        bounds = [0, *breaks.tolist(), len(columns)]
        for begin, end in itertools.pairwise(bounds):
            before, after = -(-begin // GROUP), end // GROUP
            if after - before > best.length:
                best = _Run(before, after - before, direction)
    return best
