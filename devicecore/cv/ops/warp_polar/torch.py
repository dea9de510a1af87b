"""`cv2.warpPolar` on torch tensors."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import cv2
import numpy as np

from devicecore.cv.arguments import whole
from devicecore.cv.operation import operation
from devicecore.cv.ops.warp_polar.tables import ANGLE_BORDER, from_polar, to_polar
from devicecore.cv.plan import Plan
from devicecore.cv.result_rules import scaled_to
from devicecore.cv.table import Table
from devicecore.cv.torch_support.padding import pad_images
from devicecore.cv.torch_support.sampling import LARGEST, sampler

if TYPE_CHECKING:
    from collections.abc import Iterator

    import torch
    from numpy.typing import NDArray

    from devicecore.cv.image import Image

_INTERPOLATIONS = 7
_KNOWN = _INTERPOLATIONS | cv2.WARP_FILL_OUTLIERS | cv2.WARP_INVERSE_MAP | cv2.WARP_POLAR_LOG


def examples() -> Iterator[tuple[tuple[Any, ...], dict[str, Any]]]:
    """Yield small calls of every kind."""
    image = np.random.default_rng(37).integers(0, 256, (24, 31, 3), np.uint8)
    for kind in (cv2.WARP_POLAR_LINEAR, cv2.WARP_POLAR_LOG):
        for way in (0, cv2.WARP_INVERSE_MAP):
            for flag in (cv2.INTER_NEAREST, cv2.INTER_LINEAR):
                flags = kind | way | flag | cv2.WARP_FILL_OUTLIERS
                yield (image, (19, 27), (14.5, 11.25), 13.7, flags), {}
    yield (image, (9, 0), (15, 12), 8, cv2.INTER_LINEAR), {}


def _coordinate(value: Any) -> float:
    """Return a number of Python's, as OpenCV does; it takes none of numpy's integers.

    Raises:
        TypeError: It is none.
    """
    if not isinstance(value, (int, float)) or type(value) is bool:
        raise TypeError(value)
    return float(value)


@operation(
    "src",
    examples=examples,
    result=scaled_to(lambda _, given: _size(given["dsize"], given["maxRadius"])),
)
def warpPolar(
    src: Image,
    dsize: Any,
    center: Any,
    maxRadius: float,
    flags: int,
    dst: Any = None,
) -> Plan | None:
    """Plan one call of ``cv2.warpPolar``; without a border's value, of places inside images."""
    given = whole(flags)
    size = _size(dsize, maxRadius)
    x, y = map(_coordinate, center)
    if given & ~_KNOWN or not math.isfinite(x + y + maxRadius) or not min(size) > 0:
        return None
    is_log, is_inverse = bool(given & cv2.WARP_POLAR_LOG), bool(given & cv2.WARP_INVERSE_MAP)
    # OpenCV divides by what becomes of it.
    if maxRadius <= (1 if is_log else 0) or max(*size, *src.size) > LARGEST - 2 * ANGLE_BORDER:
        return None
    if is_inverse:
        places = from_polar(size, src.size, (x, y), maxRadius, is_log=is_log)
        height = src.height + 2 * ANGLE_BORDER
    else:
        places, height = to_polar(size, (x, y), maxRadius, is_log=is_log), src.height
    if not given & cv2.WARP_FILL_OUTLIERS and not _are_inside(places, src.width, height):
        return None
    read = sampler(src, given & _INTERPOLATIONS, cv2.BORDER_CONSTANT, None)
    if read is None or (is_inverse and dst is not None):
        return None
    table = Table(places)

    def run(images: torch.Tensor) -> torch.Tensor:
        if is_inverse:
            images = pad_images(images, ANGLE_BORDER, ANGLE_BORDER, 0, 0, cv2.BORDER_WRAP)
        columns, rows = table.on(images)
        return read.read(images, columns[None], rows[None])

    return Plan(run)


def _size(dsize: Any, radius: float) -> tuple[int, int]:
    """Return the size of the result; what is not given has the area of the circle."""
    width, height = map(whole, dsize)
    if width <= 0 and height <= 0:
        return round(radius), round(radius * math.pi)
    return width, round(width * math.pi) if height <= 0 else height


def _are_inside(places: NDArray[np.float32], width: int, height: int) -> bool:
    """Return whether no pixel outside of the image has a part in places of two neighbours."""
    least, most = places.min((1, 2)), places.max((1, 2))
    return bool((least >= 0).all() and most[0] < width - 1 and most[1] < height - 1)
