"""Conversions of BGR or RGB to Lab or Luv.

Lab is arithmetic. Luv is read from a table of all colours that OpenCV itself has filled, as the
result depends on nothing but the pixel.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import cv2
import numpy as np
import torch

from devicecore.cv.environment import Environment, environment
from devicecore.cv.native import original
from devicecore.cv.ops.pixels import as_bytes, colours, has_colours, read
from devicecore.cv.plan import Plan
from devicecore.cv.table import Table
from devicecore.cv.tables.lab import cube_roots, linear_light

if TYPE_CHECKING:
    from devicecore.cv.image import Image

    Tensor = torch.Tensor

# In parts of 2**12, of blue, green and red: X, Y and Z by the white point.
_WEIGHTS = ((778, 1541, 1777), (296, 2929, 871), (3575, 448, 73))
_BITS = 15
_LIGHTNESS = (116 * 255 + 50) // 100
_DARKEST = -((16 * 255 * (1 << _BITS) + 50) // 100)
_COLOURS = 1 << 24
_CHUNK = 1 << 20


def to_lab(src: Image, blue: int) -> Plan | None:
    """Plan a conversion to Lab."""
    if not has_colours(src) or src.dtype != "uint8":
        return None
    light, roots = _lab_tables()

    def run(images: Tensor) -> Tensor:
        table, root_of = light.on(images), roots.on(images)
        planes = [read(table, plane) for plane in colours(images, blue)]
        sums = (
            planes[0] * shares[0] + planes[1] * shares[1] + planes[2] * shares[2]
            for shares in _WEIGHTS
        )
        x, y, z = (read(root_of, (each + 2048) >> 12) for each in sums)
        half = 1 << (_BITS - 1)
        middle = (128 << _BITS) + half
        lightness = (y * _LIGHTNESS + (_DARKEST + half)) >> _BITS
        red_green = ((x - y) * 500 + middle) >> _BITS
        yellow_blue = ((y - z) * 200 + middle) >> _BITS
        return as_bytes(torch.stack((lightness, red_green, yellow_blue), -1))

    return Plan(run)


def to_luv(src: Image, blue: int) -> Plan | None:
    """Plan a conversion to Luv."""
    if not has_colours(src) or src.dtype != "uint8":
        return None
    machine = environment()

    def run(images: Tensor) -> Tensor:
        first, second, third = colours(images, blue)
        return read(_all_luv(machine).on(images), first | (second << 8) | (third << 16))

    return Plan(run)


@cache
def _lab_tables() -> tuple[Table, Table]:
    return Table(linear_light()), Table(cube_roots())


@cache
def _all_luv(_environment: Environment) -> Table:
    """Return what OpenCV makes of each of the 2**24 pixels, the first channel counting fastest."""
    found: np.ndarray[Any, Any] = np.empty((_COLOURS, 3), np.uint8)
    for start in range(0, _COLOURS, _CHUNK):
        numbers = np.arange(start, start + _CHUNK, dtype="<u4")
        every = np.ascontiguousarray(numbers.view(np.uint8).reshape(1, _CHUNK, 4)[..., :3])
        found[start : start + _CHUNK] = original("cvtColor")(every, cv2.COLOR_BGR2Luv)[0]
    return Table(found)
