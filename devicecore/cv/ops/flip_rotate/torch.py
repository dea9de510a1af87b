"""`cv2.flip`, `cv2.rotate` and `cv2.transpose` on torch tensors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import cv2
import numpy as np

from devicecore.cv.arguments import whole
from devicecore.cv.operation import operation
from devicecore.cv.plan import Plan
from devicecore.cv.result_rules import scaled_to
from devicecore.cv.torch_support.dtypes import MOVABLE, unsigned_as_signed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    import torch

    from devicecore.cv.image import Image

_ROWS, _COLUMNS = 1, 2
# OpenCV transposes only some sizes of a pixel beyond these.
_MOST_CHANNELS = 4


def examples() -> Iterator[tuple[tuple[Any, ...], dict[str, Any]]]:
    """Yield small calls of every kind."""
    image = np.arange(60, dtype=np.uint8).reshape(4, 5, 3)
    for code in (0, 1, -1):
        yield (image, code), {}
        yield (image[..., 0].astype(np.uint16), code), {}


def _rotations() -> Iterator[tuple[tuple[Any, ...], dict[str, Any]]]:
    image = np.arange(60, dtype=np.uint8).reshape(4, 5, 3)
    for code in range(3):
        yield (image, code), {}
        yield (image[..., 0].astype(np.uint16), code), {}


def _transpositions() -> Iterator[tuple[tuple[Any, ...], dict[str, Any]]]:
    image = np.arange(60, dtype=np.uint8).reshape(4, 5, 3)
    yield (image,), {}
    yield (image[..., 0].astype(np.uint16),), {}


def _turned(image: Image, given: Mapping[str, Any]) -> tuple[int, int]:
    is_half = given.get("rotateCode") == cv2.ROTATE_180
    return image.size if is_half else (image.height, image.width)


@operation("src", examples=examples)
def flip(
    src: Image,
    flipCode: int,
    dst: Any = None,  # noqa: ARG001 - whoever calls kernels fills it
) -> Plan | None:
    """Plan one call of ``cv2.flip``."""
    code = whole(flipCode)
    if src.dtype not in MOVABLE or not src.pixels:
        return None
    if code == 0:
        return _flipped(_ROWS)
    return _flipped(_COLUMNS) if code > 0 else _flipped(_ROWS, _COLUMNS)


@operation("src", examples=_rotations, result=scaled_to(_turned))
def rotate(
    src: Image,
    rotateCode: int,
    dst: Any = None,  # noqa: ARG001 - whoever calls kernels fills it
) -> Plan | None:
    """Plan one call of ``cv2.rotate``."""
    code = whole(rotateCode)
    if src.dtype not in MOVABLE or not src.pixels:
        return None
    if code == cv2.ROTATE_180:
        return _flipped(_ROWS, _COLUMNS)
    if src.channels > _MOST_CHANNELS:
        return None
    if code == cv2.ROTATE_90_CLOCKWISE:
        return _moved(lambda images: images.flip(_ROWS).transpose(_ROWS, _COLUMNS))
    if code == cv2.ROTATE_90_COUNTERCLOCKWISE:
        return _moved(lambda images: images.flip(_COLUMNS).transpose(_ROWS, _COLUMNS))
    return None


@operation("src", examples=_transpositions, result=scaled_to(_turned))
def transpose(
    src: Image,
    dst: Any = None,  # noqa: ARG001 - whoever calls kernels fills it
) -> Plan | None:
    """Plan one call of ``cv2.transpose``."""
    if src.dtype not in MOVABLE or not src.pixels or src.channels > _MOST_CHANNELS:
        return None
    # Of one row, a transposed view would be contiguous, and still the caller's memory.
    return _moved(lambda images: images.transpose(_ROWS, _COLUMNS).clone())


def _flipped(*axes: int) -> Plan:
    return _moved(lambda images: images.flip(axes))


def _moved(move: Callable[[torch.Tensor], torch.Tensor]) -> Plan:
    """Plan moving pixels, whatever their type, into an array with OpenCV's order of memory."""

    def run(images: torch.Tensor) -> torch.Tensor:
        return move(unsigned_as_signed(images)).contiguous().view(images.dtype)

    return Plan(run)
