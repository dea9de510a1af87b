"""`devicecore.cv.preprocess` by Triton kernels: each image is read once, and written once."""

from __future__ import annotations

from contextlib import nullcontext
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from devicecore.cv.ops.gaussian_blur.tables import fixed_weights
from devicecore.cv.ops.preprocess import kernels
from devicecore.cv.ops.preprocess import tables as preprocess_tables
from devicecore.cv.triton_support.launch import Launch, device_context, is_aligned
from devicecore.cv.upload import uploader_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from contextlib import AbstractContextManager

    from devicecore.cv.recipe import PreprocessRecipe

CHANNELS = frozenset({1, 3, 4})
WIDEST_BLUR = 7
# What an H200 is fastest with: a pixel for each thread, and short strips of two columns for each.
BLOCK = 256
_PLACED_ROWS, _PLACING_WARPS = 1, 8
BLURRED_ROWS, BLURRING_WARPS = 14, 4


def fits(recipe: PreprocessRecipe) -> bool:
    """Return whether the kernels can do what is asked for."""
    if len(recipe.values.host) not in CHANNELS:
        return False
    if recipe.blur is None:
        return True
    return all(
        taps % 2 == 1 and taps <= WIDEST_BLUR and taps < 2 * length
        for taps, length in zip(recipe.blur, recipe.canvas, strict=True)
    )


def run(images: Any, recipe: PreprocessRecipe, device: torch.device) -> torch.Tensor:
    """Return the images as one tensor on *device*.

    Args:
        images: A list of images, or a batch in one array or tensor.
        recipe: What is done with each.
        device: Where.
    """
    values = recipe.values.there(device)
    width, height = recipe.canvas
    channels = values.shape[0]
    is_list = isinstance(images, (list, tuple))
    count = len(images) if is_list else images.shape[0]
    planes = (count, channels, height, width)
    if recipe.layout == "NCHW":
        result = in_planes = torch.empty(planes, dtype=values.dtype, device=device)
    else:
        shape = (count, height, width, channels)
        result = torch.empty(shape, dtype=values.dtype, device=device)
        in_planes = result.permute(0, 3, 1, 2)
    blurs = recipe.blur is not None
    resized = torch.empty(planes, dtype=torch.uint8, device=device) if blurs else in_planes
    with device_context(device):
        # One after the other, so that one is copied while the kernels work on the one before.
        for first, part in enumerate(images) if is_list else ((0, images),):
            with _on_gpu(part, device) as there:
                batch = _with_all_axes(there)
                target = resized[first : first + batch.shape[0]] if is_list else resized
                _place(batch, target, recipe)
        if blurs:
            _blurring(recipe, resized.shape, device, in_planes.stride())(resized, in_planes)
    return result


def _on_gpu(images: Any, device: torch.device) -> AbstractContextManager[torch.Tensor]:
    """Return a block that has images on the GPU, in one piece of memory."""
    tensor = images if isinstance(images, torch.Tensor) else torch.from_numpy(_writable(images))
    tensor = tensor.contiguous()
    return nullcontext(tensor) if tensor.device == device else uploader_of(device).lent(tensor)


def _with_all_axes(images: torch.Tensor) -> torch.Tensor:
    if images.ndim == 2:
        return images[None, ..., None]
    return images if images.ndim == 4 else images[None]


def _writable(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return the array as one that torch takes without a warning; it is only read."""
    if array.flags.writeable and min(array.strides, default=0) >= 0:
        return array
    return array.copy()


def _place(images: torch.Tensor, target: torch.Tensor, recipe: PreprocessRecipe) -> None:
    if not is_aligned(images):  # it is read in words
        images = images.clone()
    _placing(recipe, images.shape, images.device, target.stride())(images, target)


@lru_cache(maxsize=1024)
def _placing(
    recipe: PreprocessRecipe, shape: Sequence[int], device: torch.device, stride: Sequence[int]
) -> Launch:
    """Return the launch that resizes images of one shape onto their canvas."""
    count, height, width, channels = shape
    columns, rows = preprocess_tables.spans(width, height, recipe.canvas, recipe.mode)
    across = preprocess_tables.linear_columns(width, columns)
    across[:, 0] = np.where(across[:, 0] < 0, -1, across[:, 0] * channels)
    down = preprocess_tables.linear_rows(height, rows)
    rest = (
        torch.from_numpy(across).to(device),
        torch.from_numpy(down).to(device),
        recipe.values.there(device),
        height * width * channels,
        width * channels,
        (count * height * width * channels - 1) // 8,
        recipe.canvas[1],
        recipe.canvas[0],
        *_steps(stride),
        recipe.border,
    )
    constants = {
        "SWAPPED": recipe.is_swapped,
        "LOOKED_UP": recipe.blur is None,
        "CHANNELS": channels,
        "ROWS": _PLACED_ROWS,
        "BLOCK": BLOCK,
    }
    grid = _grid(recipe, _PLACED_ROWS, count)
    return Launch(kernels.place, grid, rest, constants, _PLACING_WARPS)


@lru_cache(maxsize=256)
def _blurring(
    recipe: PreprocessRecipe, shape: Sequence[int], device: torch.device, stride: Sequence[int]
) -> Launch:
    """Return the launch that blurs planes of one shape."""
    assert recipe.blur is not None
    count, channels, height, width = shape
    across, down = (fixed_weights(taps, 0, 8) for taps in recipe.blur)
    weights, reach = filled_weights(across, down)
    values = recipe.values.there(device)
    rest = (torch.from_numpy(weights).to(device), values, height, width, *_steps(stride))
    constants = {
        "REACH": reach,
        "CHANNELS": channels,
        "STEP": 1,
        "LOOKED_UP": True,
        "ROWS": BLURRED_ROWS,
        "BLOCK": BLOCK,
    }
    grid = _grid(recipe, BLURRED_ROWS, count * channels)
    return Launch(kernels.blur, grid, rest, constants, BLURRING_WARPS)


def _grid(recipe: PreprocessRecipe, rows: int, images: int) -> tuple[int, int, int]:
    width, height = recipe.canvas
    return -(-width // BLOCK), -(-height // rows), images


def _steps(stride: Sequence[int]) -> tuple[int, int, int, int]:
    """Return the steps to the next image, row, pixel and plane."""
    image, plane, row, pixel = stride
    return image, row, pixel, plane


def filled_weights(across: Sequence[int], down: Sequence[int]) -> tuple[np.ndarray[Any, Any], int]:
    """Return weights along rows and columns, filled up to the same length, and their reach."""
    reach = max(len(across), len(down)) // 2
    weights = np.zeros((2, 2 * reach + 1), np.int32)
    for own, given in zip(weights, (across, down), strict=True):
        own[reach - len(given) // 2 : reach + len(given) // 2 + 1] = given
    return weights, reach
