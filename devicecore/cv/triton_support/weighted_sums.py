"""Plans integer-weighted sums by Triton: what the kernel is compiled for."""

from __future__ import annotations

from typing import TYPE_CHECKING

import cv2
import torch

from devicecore.cv.triton_support.kernels import weighted_sums as kernels
from devicecore.cv.triton_support.strips import fits, strips

if TYPE_CHECKING:
    from collections.abc import Sequence

    from devicecore.cv.image import Image
    from devicecore.cv.plan import Plan
    from devicecore.cv.torch_support.windows import Window

# Borders whose values lie in the image, not further from its edge than the window reaches.
BORDERS = frozenset({cv2.BORDER_REPLICATE, cv2.BORDER_REFLECT, cv2.BORDER_REFLECT_101})
_BYTE = 255
_HALF, _WORD = 1 << 16, 1 << 32
# Rows of windows are kept in registers.
_LARGEST = 16


def plan_weighted_sums(
    src: Image,
    rows: Sequence[Sequence[int]],
    down: Sequence[int],
    area: Window,
    border_type: int,
    finish: tuple[str, int, int],
) -> Plan | None:
    """Return how bytes are summed by weight, or None if that does not go in 16 bits.

    Args:
        src: The images.
        rows: The weights, row by row.
        down: What each row counts.
        area: Their window.
        border_type: What stands outside of an image.
        finish: How bytes are made of sums, as `kernels.correlate` calls it, with its number; and
            what is added to sums before.
    """
    kind, number, added = finish
    room = max(area.left, area.width - 1 - area.left), max(area.top, area.height - 1 - area.top)
    if not fits(src) or border_type not in BORDERS or max(area.width, area.height) > _LARGEST:
        return None
    if any(far >= length for far, length in zip(room, src.size, strict=True)):
        return None
    total = sum(abs(times) * sum(map(abs, row)) for row, times in zip(rows, down, strict=True))
    is_signed = kind in {"bytes", "int16"}
    if total * _BYTE + abs(added) + is_signed * (1 << number) >= _HALF >> is_signed:
        return None
    lines = list(dict.fromkeys(map(tuple, rows)))
    settings = (
        tuple(weight % _WORD for line in lines for weight in line),
        tuple(lines.index(tuple(row)) for row in rows),
        tuple(times % _WORD for times in down),
        area.left,
        area.width,
        added * (_HALF + 1) % _WORD,
        kind,
        number,
    )
    constants = {"SETTINGS": settings, "BORDER": border_type, "TOP": area.top}
    sides = area.left * src.channels, (area.width - 1 - area.left) * src.channels
    dtype = torch.int16 if kind == "int16" else torch.uint8
    values, tall = 2 * len(lines), area.height
    return strips(kernels.correlate, src, sides, tall, constants, values=values, dtype=dtype)
