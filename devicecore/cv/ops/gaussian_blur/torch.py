"""`cv2.GaussianBlur` on torch tensors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import cv2
import numpy as np
import torch

from devicecore.cv.environment import environment
from devicecore.cv.operation import operation
from devicecore.cv.ops.gaussian_blur.float_blur import float_weights, gaussian_blur
from devicecore.cv.ops.gaussian_blur.tables import automatic_size, fixed_weights
from devicecore.cv.plan import Plan
from devicecore.cv.torch_support.fma import multiply_add
from devicecore.cv.torch_support.sample_images import sample_images
from devicecore.cv.torch_support.windows import FILTER_BORDERS, two_integers, weighted_sum, window

if TYPE_CHECKING:
    from collections.abc import Iterator

    from devicecore.cv.image import Image

    Tensor = torch.Tensor

_APPROXIMATE = 2  # what OpenCV calls ALGO_HINT_APPROX
_GAUSSIAN_TYPES = frozenset({"uint8", "uint16", "float32"})


def gaussian_examples() -> Iterator[tuple[tuple[Any, ...], dict[str, Any]]]:
    """Yield small calls of every kind of ``cv2.GaussianBlur``."""
    for image in sample_images():
        for size, sigma in (((3, 3), 0), ((5, 9), 0), ((7, 7), 1.3), ((0, 0), 1.7), ((11, 1), 0)):
            for border in sorted(FILTER_BORDERS):
                yield (image, size, sigma), {"borderType": border}
    for width in (18, 19):
        image = np.random.default_rng(5).random((13, width, 3), np.float32)
        for size in ((3, 3), (5, 5), (7, 9), (1, 3)):
            yield (image, size, 1.3), {}


@operation("src", examples=gaussian_examples)
def GaussianBlur(
    src: Image,
    ksize: Any,
    sigmaX: float,
    dst: Any = None,  # noqa: ARG001 - whoever calls kernels fills it
    sigmaY: float = 0,
    borderType: int = cv2.BORDER_DEFAULT,
    hint: int = 0,
) -> Plan | None:
    """Plan one call of ``cv2.GaussianBlur``."""
    if src.dtype not in _GAUSSIAN_TYPES or src.pixels == 0 or borderType not in FILTER_BORDERS:
        return None
    if (hint or cv2.getDefaultAlgorithmHint()) == _APPROXIMATE:
        return None
    if src.dtype == "float32":
        return _gaussian_of_floats(src, ksize, (sigmaX, sigmaY), borderType)
    weights = gaussian_weights(src, ksize, (sigmaX, sigmaY), borderType)
    if weights is None:
        return None
    return _gaussian(*weights, 8 if src.dtype == "uint8" else 16, borderType)


def gaussian_weights(
    src: Image, ksize: Any, given: tuple[float, float], borderType: int
) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
    """Return the weights along rows and columns in fixed point, or None for OpenCV to judge.

    Args:
        src: An image of bytes, or of 16 bits.
        ksize: How many weights, or 0 for as many as the sigma needs.
        given: The sigmas along rows and along columns; 0 for the same, or for what the size says.
        borderType: What is outside of the image.
    """
    sizes_and_sigmas = _sizes_and_sigmas(src, ksize, given, borderType)
    if sizes_and_sigmas is None:
        return None
    bits = 8 if src.dtype == "uint8" else 16
    across, down = (
        fixed_weights(size, sigma, bits) for size, sigma in zip(*sizes_and_sigmas, strict=True)
    )
    return across, down


def _sizes_and_sigmas(
    src: Image, ksize: Any, given: tuple[float, float], border_type: int
) -> tuple[tuple[int, int], tuple[float, float]] | None:
    """Return how many weights there are along rows and columns, and their sigmas."""
    sigmas = float(given[0]), float(given[1] if given[1] > 0 else given[0])
    reach = 3 if src.dtype == "uint8" else 4
    sizes = []
    for length, size, sigma in zip(src.size, two_integers(ksize), sigmas, strict=True):
        used = automatic_size(sigma, reach) if size <= 0 < sigma else size
        if length == 1 and border_type != cv2.BORDER_CONSTANT:
            used = 1
        sizes.append(used)
    if not all(size > 0 and size % 2 for size in sizes):
        return None
    return (sizes[0], sizes[1]), (max(sigmas[0], 0.0), max(sigmas[1], 0.0))


def _gaussian_of_floats(
    src: Image, ksize: Any, given: tuple[float, float], border_type: int
) -> Plan | None:
    here = environment()
    sizes_and_sigmas = _sizes_and_sigmas(src, ksize, given, border_type)
    if sizes_and_sigmas is None or here.version != (5, 0) or not here.is_x86:
        return None
    across, down = float_weights(*sizes_and_sigmas)
    if len(across) == len(down) == 1:
        return Plan(torch.clone)
    add = multiply_add(src, is_fused=here.has_fma)
    return Plan(gaussian_blur(across, down, border_type, add))


def _gaussian(across: tuple[int, ...], down: tuple[int, ...], bits: int, border: int) -> Plan:
    if len(across) == len(down) == 1:
        return Plan(torch.clone)
    area = window([len(across), len(down)])
    work = torch.int32 if bits == 8 else torch.int64

    def run(images: Tensor) -> Tensor:
        x = area.around(images, border).to(work)
        total = weighted_sum(weighted_sum(x, 2, across), 1, down)
        total += 1 << (2 * bits - 1)
        total.bitwise_right_shift_(2 * bits)
        return total.to(images.dtype)

    return Plan(run)
