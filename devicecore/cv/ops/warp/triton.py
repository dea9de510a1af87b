"""`cv2.warpAffine` and `cv2.warpPerspective` by a Triton kernel: bytes, where OpenCV fuses."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import cv2
import numpy as np

from devicecore.cv.arguments import size
from devicecore.cv.operation import Operation
from devicecore.cv.ops.warp import kernels
from devicecore.cv.ops.warp import torch as warp_torch
from devicecore.cv.ops.warp.tables import source_matrix
from devicecore.cv.torch_support.sampling import sampler
from devicecore.cv.triton_support.alignment import GROUP, is_native
from devicecore.cv.triton_support.launch import Launch
from devicecore.cv.triton_support.launch_plan import plan_launch

if TYPE_CHECKING:
    from collections.abc import Iterator

    import torch

    from devicecore.cv.image import Image
    from devicecore.cv.plan import Plan
    from devicecore.cv.torch_support.sampling import Sampler

_INTERPOLATION = 7  # the part of the flags that names it
_PAIRED = frozenset({cv2.BORDER_CONSTANT, cv2.BORDER_REPLICATE})
_AT_ONCE = 16  # columns that OpenCV computes together
_BLOCK, _ROWS, _WARPS = 64, 8, 4
# What is found out about places, a program uses for that many images, if there are so many.
_IMAGES = (8, 4, 2, 1)
_ACROSS = 16  # of a row, in each warp of threads
_WORD = 4
# More than what float32 may make of a coordinate, as a part of its largest term.
_ROUNDING = 2.0**-20
# Quotients of denominators above it, and below its inverse, are computed without a division.
_SMALLEST = 2.0**-40
_LARGEST = 1 << 31


def sampling(src: Image, flags: int, border: int, value: Any) -> tuple[int, dict[str, Any]] | None:
    """Return how a kernel reads images of bytes, or None where it does not.

    Args:
        src: The images.
        flags: OpenCV's number of the interpolation.
        border: OpenCV's number of the border.
        value: The constant border's value.

    Returns:
        The value in one word, and what the kernel is compiled for.
    """
    read: Sampler | None = sampler(src, flags, border, value)
    if read is None or src.dtype != "uint8" or read.is_cubic or src.pixels * 4 >= _LARGEST:
        return None
    is_nearest = read.interpolation == cv2.INTER_NEAREST
    if not (read.is_fused or is_nearest):
        return None
    outside = bytes(map(int, read.values)).ljust(4, b"\x00")
    constants = {
        "NEAREST": is_nearest,
        "BORDER": border,
        "PAIRS": border in _PAIRED and src.width > 1,
        "CHANNELS": src.channels,
        "WHOLE_ROWS": src.width * src.channels % _WORD == 0,
    }
    return int.from_bytes(outside, "little", signed=True), constants


def images_together(count: int) -> int:
    """Return how many of *count* images a program reads at the same places.

    Kernels are compiled for it, so there are few such numbers; the last image is read again where
    there are no more.
    """
    return next(each for each in _IMAGES if each <= count)


def _examples(known: Operation) -> Iterator[tuple[tuple[Any, ...], dict[str, Any]]]:
    calls = list(known.examples())
    yield from calls
    matrix = calls[0][0][1]
    chance = np.random.default_rng(8)
    for channels in (1, 4):
        image = chance.integers(0, 256, (14, 19, channels), np.uint8)
        yield (image, matrix, (19, 9)), {"borderValue": (9, 8, 7, 6)}


def _operation(known: Operation, rows: int) -> Operation:
    @functools.wraps(known.planner)
    def planner(
        src: Image,
        M: Any,
        dsize: Any,
        dst: Any = None,
        flags: int = cv2.INTER_LINEAR,
        borderMode: int = cv2.BORDER_CONSTANT,
        borderValue: Any = None,
        hint: int = 0,
    ) -> Plan | None:
        plan = known.planner(src, M, dsize, dst, flags, borderMode, borderValue, hint)
        how = sampling(src, flags & _INTERPOLATION, borderMode, borderValue)
        if plan is None or how is None:
            return None
        value, constants = how
        wide, high = src.size if dsize is None else size(dsize)
        if wide * high * src.channels >= _LARGEST:
            return None
        matrix = source_matrix(M, rows, is_inverse=bool(flags & cv2.WARP_INVERSE_MAP))
        numbers = [*matrix.ravel().tolist(), 0.0, 0.0, 1.0][:9]
        blocks = float(wide - wide % _AT_ONCE)
        test = _inner_test(np.array(numbers).reshape(3, 3), src.size, (wide, high))
        read = (src.height, src.width, src.pixels * src.channels)
        made = (high, wide, high * wide * src.channels)
        rest = (*numbers, *test, blocks, *read, *made, value)
        constants = {"PERSPECTIVE": rows == 3, **constants, "IN_GROUPS": wide % GROUP == 0}

        def launch(count: int, device: torch.device) -> Launch:
            together = images_together(count)
            grid = (-(-wide // _BLOCK), -(-high // _ROWS), -(-count // together))
            own = {"NATIVE": is_native(device), "ACROSS": _ACROSS, "ROWS": _ROWS}
            own |= {"IMAGES": together, "BLOCK": _BLOCK}
            return Launch(kernels.warp, grid, (*rest, count), constants | own, _WARPS)

        return plan_launch(src, (high, wide, src.channels), launch)

    return Operation(
        known.name, "triton", planner, known.images, functools.partial(_examples, known)
    )


def _inner_test(matrix: Any, source: tuple[int, int], result: tuple[int, int]) -> list[float]:
    """Return what says whether all pixels of a program are read inside of the source.

    Between its second pixel and its third to last one, a place is no farther from the middle than a
    radius. Numerators of its distance and of the radius are linear functions of where a program
    begins; what they vary in it, and what float32 makes of them, is taken from the radius's.

    Args:
        matrix: Of three rows.
        source: Width and height of the source.
        result: Width and height of the result.

    Returns:
        Three numbers for each axis's distance, and three for each axis's radius; the test holds
        nowhere where quotients may be other than those of a division.
    """
    width, height = result
    edges = np.array([(x, y, 1) for x in (0, width) for y in (0, height)])
    below = edges @ matrix[2]
    span = np.array([_BLOCK - 1, _ROWS - 1, 0]) / 2
    size = np.array([width + _BLOCK, height + _ROWS, 1])
    distances, radii = [], []
    for row, length in zip(matrix, source, strict=False):
        distance = row - (length - 2) / 2 * matrix[2]
        radius = (length - 4) / 2 * matrix[2]
        terms = (np.abs(row) + length * np.abs(matrix[2])) @ size
        varied = (np.abs(distance) + np.abs(radius)) @ span
        # Where a program begins is that far from its middle.
        distance[2] += distance @ span
        radius[2] += radius @ span - varied - _ROUNDING * terms
        if not (below.min() > _SMALLEST and below.max() < 1 / _SMALLEST):
            radius = np.array([0.0, 0.0, -1.0])
        distances += distance.tolist()
        radii += radius.tolist()
    return distances + radii


warpAffine: Operation = _operation(warp_torch.warpAffine, 2)
warpPerspective: Operation = _operation(warp_torch.warpPerspective, 3)
