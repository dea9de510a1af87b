"""`cv2.pyrDown` and `cv2.pyrUp` on torch tensors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import cv2
import numpy as np
import torch

from devicecore.cv.border_index import REPEATING
from devicecore.cv.operation import operation
from devicecore.cv.plan import Plan
from devicecore.cv.result_rules import scaled_to
from devicecore.cv.torch_support.dtypes import saturate
from devicecore.cv.torch_support.padding import pad_images
from devicecore.cv.torch_support.windows import two_integers, weighted_sum

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from devicecore.cv.image import Image

    Tensor = torch.Tensor

_TYPES = frozenset({"uint8", "uint16", "int16"})
_DOWN = (1, 4, 6, 4, 1)


def examples() -> Iterator[tuple[tuple[Any, ...], dict[str, Any]]]:
    """Yield small calls of every kind."""
    chance = np.random.default_rng(2)
    for dtype in _TYPES:
        limits = np.iinfo(dtype)
        for shape in ((13, 18, 3), (6, 7, 1), (1, 1, 3)):
            yield (chance.integers(limits.min, limits.max, shape, dtype, endpoint=True),), {}


def down_examples() -> Iterator[tuple[tuple[Any, ...], dict[str, Any]]]:
    """Yield these with all borders."""
    for arguments, _ in examples():
        for border in sorted(REPEATING):
            yield arguments, {"borderType": border}


def _half(image: Image, _: Mapping[str, Any]) -> tuple[int, int]:
    return (image.width + 1) // 2, (image.height + 1) // 2


def _double(image: Image, _: Mapping[str, Any]) -> tuple[int, int]:
    return 2 * image.width, 2 * image.height


@operation("src", examples=down_examples, result=scaled_to(_half))
def pyrDown(
    src: Image,
    dst: Any = None,  # noqa: ARG001 - whoever calls kernels fills it
    dstsize: Any = None,
    borderType: int = cv2.BORDER_DEFAULT,
) -> Plan | None:
    """Plan one call of ``cv2.pyrDown``."""
    size = (src.width + 1) // 2, (src.height + 1) // 2
    if src.dtype not in _TYPES or src.pixels == 0 or borderType not in REPEATING:
        return None
    if not _is_size(dstsize, size):
        return None
    target = getattr(torch, src.dtype)
    # Windows of all even pixels, so the last one ends after one or after two more.
    bottom, right = 2 - (src.height + 1) % 2, 2 - (src.width + 1) % 2

    def run(images: Tensor) -> Tensor:
        x = pad_images(images, 2, bottom, 2, right, borderType).to(torch.int32)
        sums = weighted_sum(x, 1, _DOWN)[:, ::2]
        total = weighted_sum(sums, 2, _DOWN)[:, :, ::2]
        return saturate((total + 128).bitwise_right_shift_(8), target)

    return Plan(run)


@operation("src", examples=examples, result=scaled_to(_double))
def pyrUp(
    src: Image,
    dst: Any = None,  # noqa: ARG001 - whoever calls kernels fills it
    dstsize: Any = None,
    borderType: int = cv2.BORDER_DEFAULT,
) -> Plan | None:
    """Plan one call of ``cv2.pyrUp``."""
    if src.dtype not in _TYPES or src.pixels == 0 or borderType != cv2.BORDER_DEFAULT:
        return None
    if not _is_size(dstsize, (2 * src.width, 2 * src.height)):
        return None
    target = getattr(torch, src.dtype)

    def run(images: Tensor) -> Tensor:
        total = _doubled(_doubled(images.to(torch.int32), 2), 1)
        return saturate((total + 32).bitwise_right_shift_(6), target)

    return Plan(run)


def _is_size(given: Any, expected: tuple[int, int]) -> bool:
    return given is None or two_integers(given) in {(0, 0), expected}


def _doubled(x: Tensor, axis: int) -> Tensor:
    """Return an axis twice as long, times 8: it is mirrored before, and repeated after."""
    length = x.shape[axis]
    before = x.narrow(axis, min(1, length - 1), 1)
    x = torch.cat([before, x, x.narrow(axis, length - 1, 1)], axis)
    even = weighted_sum(x, axis, (1, 6, 1))
    odd = weighted_sum(x.narrow(axis, 1, length + 1), axis, (4, 4))
    return torch.stack([even, odd], axis + 1).flatten(axis, axis + 1)
