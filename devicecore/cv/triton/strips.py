"""Launches of kernels of neighbourhoods: which program does which words of which rows."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from devicecore.cv.triton.launching import Launch, current

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from devicecore.cv.image import Image

BLOCK, ROWS = 256, 16
_WARPS = 4
# Programs of taller windows have half of the rows, as it takes long to compile them.
_SHORT = 3
_WORD = 4
_MOST_BYTES = 1 << 30
# From this capability on, CUDA cards compare two halves of a word by one instruction.
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
    natively: bool = False,
    dtype: torch.dtype = torch.uint8,
    is_thin: bool = False,
) -> Callable[[torch.Tensor], torch.Tensor]:
    """Return what runs a kernel over images of bytes, and gives images of the same shape.

    Args:
        kernel: One of those that `devicecore.cv.triton.kernels.words` is for.
        src: The images.
        sides: How many bytes to the left, and to the right, the kernel reads.
        tall: How many rows it reads for each that it writes.
        constants: What the kernel is compiled for, but for what is the same for all such kernels.
        rest: Returns its own arguments, for a device.
        natively: Whether it wants to know if the card compares halves of words.
        dtype: The type of what it writes.
        is_thin: Whether a program has half as many words, as each takes many registers.
    """
    length = src.width * src.channels
    words = -(-length // _WORD)
    before, after = (-(-side // _WORD) for side in sides)
    block = BLOCK // 2 if is_thin else BLOCK
    rows = ROWS if tall <= _SHORT else ROWS // 2
    is_whole = length % _WORD == 0 and words >= before + block + after and src.height >= rows
    inner = -(-(words - before - after) // block) if is_whole else 0
    ends = before + after if is_whole else words
    count = -(-src.height // rows)
    columns = inner + -(-ends // block)
    common = {"CHANNELS": src.channels, "BEFORE": before, "AFTER": after}
    common |= {"ROWS": rows, "BLOCK": block}

    @functools.lru_cache(maxsize=16)
    def launch(images: int, device: torch.device) -> Launch:
        own = {"NATIVE": compares_halves(device)} if natively else {}
        arguments = (src.height, length, words, inner, ends, *rest(device))
        grid = (columns, count, images)
        return Launch(kernel, grid, arguments, {**constants, **own, **common}, _WARPS)

    def run(images: torch.Tensor) -> torch.Tensor:
        images = images.contiguous()
        if images.data_ptr() % _WORD:
            images = images.clone()
        found = torch.empty_like(images, dtype=dtype)
        with current(images.device):
            launch(images.shape[0], images.device)(images, found)
        return found

    return run


def example(channels: int, seed: int = 0) -> np.ndarray[Any, Any]:
    """Return an image that is just large enough for programs of its inner part."""
    chance = np.random.default_rng(seed)
    width = _WORD * (BLOCK + 2 * channels)
    return chance.integers(0, 256, (ROWS, -(-width // channels) & -_WORD, channels), np.uint8)


def compares_halves(device: torch.device) -> bool:
    """Return whether a card compares both halves of words by one instruction."""
    if device.type != "cuda" or torch.version.hip is not None:
        return False
    return torch.cuda.get_device_capability(device) >= _HALVES
