"""Aligns images in memory for kernels that read four pixels at a time."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from collections.abc import Sequence

GROUP = 4
WORD = 4


def groups(pixels: int) -> int:
    """Return how many groups of four so many pixels are in."""
    return -(-pixels // GROUP)


def align_images(images: torch.Tensor, to: int) -> torch.Tensor:
    """Return images in one piece of memory that begins at a multiple of *to* bytes."""
    images = images.contiguous()
    return images.clone() if images.data_ptr() % to else images


def readable(images: torch.Tensor) -> torch.Tensor:
    """Return images of bytes in one piece of memory that begins at a word and has whole groups.

    Args:
        images: Of shape (images, height, width, channels); copied only where it has to be.
    """
    images = images.contiguous()
    channels = images.shape[3]
    count = images.numel()
    if count % (GROUP * channels) == 0 and images.data_ptr() % WORD == 0:
        return images
    filled = images.new_empty(groups(count // channels) * GROUP * channels)
    filled[:count] = images.view(-1)
    return filled


def writable(shape: Sequence[int], device: torch.device) -> tuple[torch.Tensor, torch.Tensor]:
    """Return memory for whole groups of bytes, and the images of that shape at its beginning."""
    pixels, channels = math.prod(shape[:3]), shape[3]
    if pixels % GROUP == 0:
        result = torch.empty(shape, dtype=torch.uint8, device=device)
        return result, result
    memory = torch.empty(groups(pixels) * GROUP * channels, dtype=torch.uint8, device=device)
    return memory, memory[: pixels * channels].view(shape)


def is_native(device: torch.device) -> bool:
    """Return whether kernels may use instructions of NVIDIA's GPUs."""
    return device.type == "cuda" and torch.version.hip is None
