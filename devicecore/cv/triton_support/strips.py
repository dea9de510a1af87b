"""Launches neighbourhood kernels: which program computes which words of which rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from devicecore.cv.triton_support.launch import Launch
from devicecore.cv.triton_support.launch_plan import plan_launch

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from devicecore.cv.image import Image
    from devicecore.cv.plan import Plan

# Groups of words that a program has, rows of a strip, and rows that are read ahead.
BLOCK, ROWS, AHEAD = 128, 8, 2
# A strip has at least so many times the rows that it reads beyond its own.
TALL = 4
# Rows that are done in each turn of a loop, at most; it takes long to compile more.
STEPS = 5
# Registers for rows that are kept, and words of a group that are written.
KEPT_VALUES, WRITTEN = 32, 4
# Of images, so that their largest groups of words can be read as one.
ALIGNMENT = 16
_WORD = 4
_MOST_BYTES = 1 << 30
# From this capability on, CUDA GPUs compare two halves of a word by one instruction.
_HALVES = (9, 0)


def fits(src: Image) -> bool:
    """Return whether images are of bytes whose places have 32 bits."""
    return src.dtype == "uint8" and src.pixels * src.channels <= _MOST_BYTES


def strips(
    kernel: Any,
    src: Image,
    sides: tuple[int, int],
    tall: int,
    constants: Mapping[str, Any],
    rest: Callable[[torch.device], Sequence[Any]] = lambda _: (),
    *,
    values: int = 2,
    kept: int | None = None,
    high: int | None = None,
    ahead: int | None = None,
    dtype: torch.dtype = torch.uint8,
) -> Plan:
    """Return how a kernel makes of images of bytes others of the same shape.

    Args:
        kernel: One that calls `devicecore.cv.triton_support.kernels.strips.passed`.
        src: The images.
        sides: How many bytes to the left, and to the right, the kernel reads.
        tall: How many rows it reads for each that it writes.
        constants: What the kernel is compiled for, but for what is the same for all such kernels.
        rest: Returns its own arguments, for a device.
        values: How many values of each word of a row it keeps for rows below.
        kept: How many registers may hold these, if not as many as usual.
        high: How many rows a strip has at least, if not as many as usual.
        ahead: How many rows it reads ahead, if not as many as usual.
        dtype: The type of what it writes.
    """
    length = src.width * src.channels
    words = -(-length // _WORD)
    above = tall - 1
    step = next((each for each in range(STEPS, 0, -1) if above % each == 0), 1)
    rows = -(-max(high or ROWS, TALL * above) // step) * step
    group = _group(length, above * values, kept or KEPT_VALUES, dtype.itemsize)
    before, after = (_beside(-(-side // _WORD), group) for side in sides)
    left, right = (-(-side // group) * group for side in (before, after))
    is_whole = length % _WORD == 0 and words > left + right and src.height >= rows
    groups = (words - left - right) // group if is_whole else 0
    ends = left + right if is_whole else words
    strips = -(-src.height // rows)
    others = -(-ends * strips // BLOCK)
    programs = others + -(-groups * strips // BLOCK)
    common = {"VALUES": values, "KEPT": above, "CHANNELS": src.channels}
    common |= {"BEFORE": before, "AFTER": after, "GROUP": group, "SIZE": dtype.itemsize}
    common |= {"ROWS": rows, "STEP": step, "AHEAD": ahead or AHEAD, "BLOCK": BLOCK}

    def launch(images: int, device: torch.device) -> Launch:
        own = {"NATIVE": compares_halves(device)}
        arguments = (src.height, length, words, groups, ends, others, *rest(device))
        return Launch(
            kernel,
            (programs, images, 1),
            arguments,
            {**constants, **own, **common},
            warps_of(BLOCK),
        )

    shape = (src.height, src.width, src.channels)
    return plan_launch(src, shape, launch, dtype=dtype, alignment=ALIGNMENT, in_groups=False)


def _group(length: int, kept: int, most: int, size: int) -> int:
    """Return how many words a thread does in each row.

    Args:
        length: Of a row, in bytes; each begins at a whole group.
        kept: How many registers are kept for each word.
        most: How many may be kept in all.
        size: How many bytes are written for each that is read.
    """
    for group in (4, 2):
        if length % (_WORD * group) == 0 and group * kept <= most and group * size <= WRITTEN:
            return group
    return 1


def _beside(words: int, group: int) -> int:
    """Return how many words are read so that groups, or halves of them, are read as one."""
    return words if words <= group // 2 else -(-words // group) * group


def example(channels: int, seed: int = 0) -> np.ndarray[Any, Any]:
    """Return an image that is just large enough for programs of its inner part."""
    chance = np.random.default_rng(seed)
    return chance.integers(0, 256, (2 * ROWS, 64, channels), np.uint8)


def warps_of(block: int) -> int:
    """Return how many groups of threads share a program, so that each thread has one item."""
    return max(1, block // (32 if torch.version.hip is None else 64))


def compares_halves(device: torch.device) -> bool:
    """Return whether a GPU compares both halves of words by one instruction."""
    if device.type != "cuda" or torch.version.hip is not None:
        return False
    return torch.cuda.get_device_capability(device) >= _HALVES
