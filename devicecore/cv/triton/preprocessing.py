"""`devicecore.cv.preprocess` by kernels of Triton: each image is read once, and written once."""

from __future__ import annotations

from contextlib import nullcontext
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from attrs import frozen

from devicecore.cv.table import Table
from devicecore.cv.tables import placement
from devicecore.cv.tables.gaussian import fixed_weights
from devicecore.cv.triton.kernels import preprocessing as kernels
from devicecore.cv.triton.launching import aligned, launch
from devicecore.cv.uploading import uploader_of

if TYPE_CHECKING:
    from devicecore.cv.recipe import Recipe
    from devicecore.cv.tables.placement import Mode

CHANNELS = frozenset({1, 3, 4})
_WIDEST_BLUR = 7
# What an H200 is fastest with: a pixel for each thread, and short strips of two columns for each.
_BLOCK = 256
_PLACED_ROWS, _PLACING_WARPS = 1, 8
_BLURRED_ROWS, _BLURRING_WARPS = 14, 4


def fits(recipe: Recipe) -> bool:
    """Return whether the kernels can do what is asked for."""
    if len(recipe.values.host) not in CHANNELS:
        return False
    if recipe.blur is None:
        return True
    return all(
        taps % 2 == 1 and taps <= _WIDEST_BLUR and taps < 2 * length
        for taps, length in zip(recipe.blur, recipe.canvas, strict=True)
    )


def run(images: Any, recipe: Recipe, device: torch.device) -> torch.Tensor:
    """Return the images as one tensor on *device*.

    Args:
        images: A list of images, or a batch in one array or tensor.
        recipe: What is done with each.
        device: Where.
    """
    parts = enumerate(images) if isinstance(images, (list, tuple)) else [(0, images)]
    # One after the other, so that one is copied while the kernels work on the one before.
    batches = ((place, _batch_on(each, device)) for place, each in parts)
    count = len(images) if isinstance(images, (list, tuple)) else images.shape[0]
    return _run(batches, count, recipe, device)


def _batch_on(images: Any, device: torch.device) -> torch.Tensor:
    """Return a batch of images on the card, each in one piece of memory."""
    tensor = images if isinstance(images, torch.Tensor) else torch.from_numpy(_writable(images))
    if tensor.device != device:
        tensor = uploader_of(device).upload(tensor.contiguous())
    if tensor.ndim == 2:
        tensor = tensor[..., None]
    return tensor.contiguous() if tensor.ndim == 4 else tensor.contiguous()[None]


def _writable(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return the array as one that torch takes without a warning; it is only read."""
    if array.flags.writeable and min(array.strides, default=0) >= 0:
        return array
    return array.copy()


def _run(batches: Any, count: int, recipe: Recipe, device: torch.device) -> torch.Tensor:
    values = recipe.values.there(device)
    width, height = recipe.canvas
    channels = values.shape[0]
    planes = (count, channels, height, width)
    if recipe.layout == "NCHW":
        result = in_planes = torch.empty(planes, dtype=values.dtype, device=device)
    else:
        shape = (count, height, width, channels)
        result = torch.empty(shape, dtype=values.dtype, device=device)
        in_planes = result.permute(0, 3, 1, 2)
    blurs = recipe.blur is not None
    resized = torch.empty(planes, dtype=torch.uint8, device=device) if blurs else in_planes
    # Entering takes as long as a launch, and is seldom needed.
    is_current = torch.cuda.current_device() == device.index
    with nullcontext() if is_current else torch.cuda.device(device):
        for first, images in batches:
            _place(images, resized[first : first + images.shape[0]], recipe, values)
        if blurs:
            _blur(resized, in_planes, recipe, values)
    return result


def _place(images: Any, target: torch.Tensor, recipe: Recipe, values: torch.Tensor) -> None:
    count, height, width, channels = images.shape
    tables = _tables(width, height, channels, recipe.canvas, recipe.mode)
    if not aligned(images):  # it is read in words
        images = images.clone()
    launch(
        kernels.place,
        _grid(recipe, _PLACED_ROWS, count),
        (
            images,
            target,
            tables.columns.on(images),
            tables.rows.on(images),
            values,
            height * width * channels,
            width * channels,
            (images.numel() - 1) // 8,
            recipe.canvas[1],
            recipe.canvas[0],
            *_strides(target),
            recipe.border,
        ),
        {
            "SWAPPED": recipe.is_swapped,
            "LOOKED_UP": recipe.blur is None,
            "CHANNELS": channels,
            "ROWS": _PLACED_ROWS,
            "BLOCK": _BLOCK,
        },
        (recipe, images.shape, images.device, aligned(target)),
        _PLACING_WARPS,
    )


def _blur(planes: torch.Tensor, target: torch.Tensor, recipe: Recipe, values: torch.Tensor) -> None:
    assert recipe.blur is not None
    weights, reach = _weights(recipe.blur)
    count, channels, height, width = planes.shape
    launch(
        kernels.blur,
        _grid(recipe, _BLURRED_ROWS, count * channels),
        (planes, target, weights.on(planes), values, height, width, *_strides(target)),
        {"REACH": reach, "CHANNELS": channels, "ROWS": _BLURRED_ROWS, "BLOCK": _BLOCK},
        (recipe, count, planes.device),
        _BLURRING_WARPS,
    )


def _grid(recipe: Recipe, rows: int, images: int) -> tuple[int, int, int]:
    width, height = recipe.canvas
    return -(-width // _BLOCK), -(-height // rows), images


def _strides(target: torch.Tensor) -> tuple[int, int, int, int]:
    """Return the steps to the next image, row, pixel and plane."""
    image, plane, row, pixel = target.stride()
    return image, row, pixel, plane


@frozen
class _Tables:
    columns: Table
    rows: Table


@lru_cache(maxsize=1024)
def _tables(width: int, height: int, channels: int, canvas: tuple[int, int], mode: Mode) -> _Tables:
    columns, rows = placement.spans(width, height, canvas, mode)
    across = placement.linear_columns(width, columns)
    across[:, 0] = np.where(across[:, 0] < 0, -1, across[:, 0] * channels)
    return _Tables(Table(across), Table(placement.linear_rows(height, rows)))


@lru_cache(maxsize=64)
def _weights(blur: tuple[int, int]) -> tuple[Table, int]:
    """Return the kernels along rows and columns, filled up to the same length, and their reach."""
    reach = max(blur) // 2
    weights = np.zeros((2, 2 * reach + 1), np.int32)
    for own, taps in zip(weights, blur, strict=True):
        own[reach - taps // 2 : reach + taps // 2 + 1] = fixed_weights(taps, 0, 8)
    return Table(weights), reach
