"""`preprocess`: turns uint8 images into a network's input in as few passes as possible."""

from __future__ import annotations

from functools import cache, lru_cache, partial
from typing import TYPE_CHECKING, Any, Literal, TypeVar, get_args

import cv2
import numpy as np
import torch

from devicecore.cv import batches, catalog
from devicecore.cv.choice_log import is_wanted, say
from devicecore.cv.dispatch import device_for, function
from devicecore.cv.image import BATCH_AXES
from devicecore.cv.ops.preprocess import tables as preprocess_tables
from devicecore.cv.policy import current_policy, using
from devicecore.cv.recipe import Layout, PreprocessRecipe, normalized_bytes
from devicecore.cv.self_test import self_test_failure
from devicecore.optional import installed
from devicecore.scope import current_device, device_scope
from devicecore.transfer import as_tensor
from devicecore.transfer.torch_leaves import without_modes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from devicecore.cv.ops.preprocess.tables import Mode
    from devicecore.cv.table import Table
    from devicecore.device import Device

Dtype = Literal["float32", "float16", "bfloat16"]
_Choice = TypeVar("_Choice", bound=str)
_BYTES = frozenset({torch.uint8, np.dtype(np.uint8)})


def preprocess(
    images: Any,
    size: int | tuple[int, int],
    *,
    mode: Mode = "letterbox",
    color: int | None = None,
    blur: int | tuple[int, int] | None = None,
    mean: float | Sequence[float] = 0.0,
    std: float | Sequence[float] = 1.0,
    layout: Layout = "NCHW",
    dtype: Dtype = "float32",
    border: int = 114,
) -> torch.Tensor:
    """Return images as the input of a network: resized, perhaps blurred, normalised, in one tensor.

    The values are those that ``cv2.resize`` with INTER_LINEAR, ``cv2.copyMakeBorder``,
    ``cv2.cvtColor``, ``cv2.GaussianBlur`` and ``(image.astype(float32) / 255 - mean) / std`` give
    one after the other.

    Args:
        images: An image of bytes of shape (height, width, channels), a batch of shape (images,
            height, width, channels), or a list of images of any sizes. Arrays of numpy go to the
            current device, tensors stay on theirs.
        size: Width and height of the result, or one number for both, in pixels.
        mode: ``"letterbox"`` keeps the shape of an image and fills up with *border*, ``"crop"``
            keeps it and cuts what is over from both sides, ``"stretch"`` does not keep it.
        color: ``cv2.COLOR_BGR2RGB`` to turn the order of the channels round, or None.
        blur: Taps of ``cv2.GaussianBlur`` with sigma 0, along rows and along columns.
        mean: What is taken off, for each channel or for all; in parts of 255.
        std: What the rest is divided by.
        layout: ``"NCHW"`` or ``"NHWC"``.
        dtype: ``"float32"``, ``"float16"`` or ``"bfloat16"``.
        border: The byte around an image in a letterbox.

    Returns:
        A tensor on the device, with an axis for the images also where there is one. On a GPU it may
        still be computed, ordered on the caller's current stream.

    Raises:
        ValueError: An argument has no such meaning.
        ScopeError: A tensor is on another device than the scope names.
    """
    if not getattr(images, "ndim", 0) and not batches.is_batch("preprocess", images):
        msg = "there is no image to pre-process"
        raise ValueError(msg)
    whole = getattr(images, "ndim", 0) == BATCH_AXES
    given: Sequence[Any] = images if whole or batches.is_batch("preprocess", images) else [images]
    recipe = _recipe(
        _size(size),
        mode,
        color,
        blur if blur is None or isinstance(blur, int) else tuple(blur),
        _key(mean),
        _key(std),
        layout,
        dtype,
        border,
        _channels([images] if whole else given),
    )
    with without_modes():
        device = device_for(images if whole else given[0], current_device())
        there = torch.device(device.torch_device or "cpu")
        fused = fused_input(device, given, recipe)
        if fused is not None:
            return fused
        return torch.stack([preprocess_in_steps(each, recipe, there) for each in given])


@lru_cache(maxsize=256)
def _recipe(
    size: tuple[int, int],
    mode: Mode,
    color: int | None,
    blur: int | tuple[int, int] | None,
    mean: float | tuple[float, ...],
    std: float | tuple[float, ...],
    layout: Layout,
    dtype: Dtype,
    border: int,
    channels: int,
) -> PreprocessRecipe:
    kind = getattr(torch, _one_of("dtype", dtype, get_args(Dtype)))
    return PreprocessRecipe(
        canvas=size,
        mode=_one_of("mode", mode, preprocess_tables.MODES),
        border=_byte(border),
        is_swapped=_is_swapped(color, channels),
        blur=(blur, blur) if isinstance(blur, int) else blur,
        values=normalized_bytes(mean, _divisor(std), channels, kind),
        layout=_one_of("layout", layout, get_args(Layout)),
    )


def fused_input(device: Device, images: Any, recipe: PreprocessRecipe) -> torch.Tensor | None:
    """Return what kernels make of images that do all of a recipe at once; None without them.

    Args:
        device: Where.
        images: A list of images, or a batch in one array or tensor.
        recipe: What is done with each.
    """
    there = torch.device(device.torch_device or "cpu")
    reason = _why_not_fused(device, there, recipe)
    if is_wanted():
        what = "one function after the other" if reason else "the triton kernels for all of it"
        say("cv.preprocess", device.name, what, {"triton": reason} if reason else {})
    if reason:
        return None
    from devicecore.cv.ops.preprocess import triton as fused  # Triton is not everywhere

    return fused.run(images, recipe, there)


def _why_not_fused(device: Device, there: torch.device, recipe: PreprocessRecipe) -> str:
    """Return why no kernels that are right on this device do all of it in one, or nothing."""
    label = current_policy().label
    if device.device_type not in catalog.TRITON_TYPES:
        return f"there is none for {device.device_type}"
    if label not in {None, "triton"}:
        return f"kernels labelled {label!r} are asked for"
    if not _has_triton():
        return "Triton is not installed"
    from devicecore.cv.ops.preprocess import triton as fused  # Triton is not everywhere

    if not fused.fits(recipe):
        return "they are not for such a recipe"
    return self_test_failure("cv.preprocess[triton]", device, partial(_tested, there))


@cache
def _has_triton() -> bool:
    return installed("triton")


def _tested(there: torch.device) -> str:
    """Compare the kernels with the functions that they stand for, on the host.

    Returns:
        What is wrong, or an empty string.
    """
    from devicecore.cv.ops.preprocess import triton as fused  # as above

    picture = np.random.default_rng(7).integers(0, 256, (45, 61, 3), np.uint8)
    values = normalized_bytes(0.4, 0.3, 3, torch.float32)
    for mode in preprocess_tables.MODES:
        for blur in (None, (5, 3)):
            recipe = PreprocessRecipe((32, 24), mode, 114, True, blur, values, "NCHW")
            try:
                actual = fused.run([picture], recipe, there)[0].cpu()
            except Exception as error:  # noqa: BLE001 - whatever it is, they do not work
                return f"its self-test failed: {type(error).__name__}: {error}"
            with device_scope("cpu"), using("native"):
                expected = preprocess_in_steps(picture, recipe, torch.device("cpu"))
            if not torch.equal(actual, expected):
                return f"its self-test found other values than OpenCV's: {mode}, blur {blur}"
    return ""


def preprocess_in_steps(image: Any, recipe: PreprocessRecipe, there: torch.device) -> torch.Tensor:
    """Return one image by the functions that `preprocess` stands for."""
    height, width = image.shape[:2]
    columns, rows = preprocess_tables.spans(width, height, recipe.canvas, recipe.mode)
    resized = function("resize")(as_tensor(image, there), (columns.resized, rows.resized))
    seen = resized.view(rows.resized, columns.resized, -1)[rows.seen, columns.seen]
    canvas = torch.full(
        (rows.length, columns.length, seen.shape[2]),
        recipe.border,
        dtype=torch.uint8,
        device=there,
    )
    canvas[rows.covered, columns.covered] = seen
    if recipe.is_swapped:
        canvas = canvas.flip(2)
    if recipe.blur is not None:
        canvas = function("GaussianBlur")(canvas, recipe.blur, 0).view(canvas.shape)
    return _looked_up(canvas, recipe.values, recipe.layout)


def normalize_images(
    images: Sequence[torch.Tensor],
    mean: float | Sequence[float],
    std: float | Sequence[float],
    layout: Layout,
    dtype: Dtype,
) -> torch.Tensor:
    """Return images of bytes and of one size as the input of a network, as `preprocess` does."""
    channels = _channels(images)
    kind = getattr(torch, _one_of("dtype", dtype, get_args(Dtype)))
    values = normalized_bytes(_key(mean), _divisor(_key(std)), channels, kind)
    layout = _one_of("layout", layout, get_args(Layout))
    views = [each.view(*each.shape[:2], channels) for each in images]
    return torch.stack([_looked_up(each, values, layout) for each in views])


def _looked_up(image: torch.Tensor, values: Table, layout: Layout) -> torch.Tensor:
    table = values.on(image)
    pixels = table[torch.arange(len(table), device=image.device), image.long()]
    return pixels.permute(2, 0, 1).contiguous() if layout == "NCHW" else pixels


def _channels(images: Sequence[Any]) -> int:
    kinds = {(image.shape[-1] if image.ndim > 2 else 1, image.dtype) for image in images}
    if len(kinds) != 1 or next(iter(kinds))[1] not in _BYTES:
        msg = (
            "the images are bytes with the same number of channels, all arrays or all tensors, not "
            f"{sorted(kinds, key=str)}"
        )
        raise ValueError(msg)
    if not all(min(image.shape) for image in images):
        msg = "the images have pixels; there is one without"
        raise ValueError(msg)
    return int(next(iter(kinds))[0])


def _key(values: Any) -> float | tuple[float, ...]:
    given = values if np.isscalar(values) else tuple(values)
    try:
        return _numbers(given)
    except TypeError:  # something among them that cannot be kept, so no number
        return _numbers.__wrapped__(given)


@lru_cache(maxsize=256)
def _numbers(values: Any) -> float | tuple[float, ...]:
    """Return one number or several; checking them takes as long as a launch."""
    given = values if isinstance(values, tuple) else (values,)
    numbers = [float(each) for each in given if isinstance(each, (int, float, np.number))]
    if len(numbers) != len(given) or not np.isfinite(numbers).all():
        msg = f"mean and std are numbers, one or one for each channel, not {values!r}"
        raise ValueError(msg)
    return tuple(numbers) if isinstance(values, tuple) else numbers[0]


def _divisor(std: float | tuple[float, ...]) -> float | tuple[float, ...]:
    if not np.all(std):
        msg = "std has no zeros, since it divides"
        raise ValueError(msg)
    return std


def _size(value: Any) -> tuple[int, int]:
    pair = [value, value] if isinstance(value, (int, np.integer)) else [*value]
    is_whole = all(isinstance(each, (int, np.integer)) and each > 0 for each in pair)
    if len(pair) != 2 or not is_whole:
        msg = f"size is a width and a height in pixels, or one number for both, not {value!r}"
        raise ValueError(msg)
    return int(pair[0]), int(pair[1])


def _byte(value: Any) -> int:
    if not isinstance(value, (int, np.integer)) or not 0 <= value <= 255:
        msg = f"border is a byte, not {value!r}"
        raise ValueError(msg)
    return int(value)


def _is_swapped(color: int | None, channels: int) -> bool:
    if color is None:
        return False
    if color != cv2.COLOR_BGR2RGB or channels != 3:
        msg = "color is None, or cv2.COLOR_BGR2RGB for images of three channels"
        raise ValueError(msg)
    return True


def _one_of(name: str, value: _Choice, choices: Sequence[str]) -> _Choice:
    if value not in choices:
        msg = f"{name} is one of {', '.join(choices)}, not {value!r}"
        raise ValueError(msg)
    return value
