"""Conversions of BGR or RGB to Lab or Luv.

Luv is found between eight nodes of a table.
"""

from __future__ import annotations

from functools import cache
from itertools import product
from typing import TYPE_CHECKING

import torch

from devicecore.cv.ops.color.tables.lab import cube_roots, linear_light
from devicecore.cv.ops.color.tables.luv import NODES, grid
from devicecore.cv.plan import Plan
from devicecore.cv.table import Table
from devicecore.cv.torch_support.pixels import as_bytes, colours, has_colours, lookup_rows

if TYPE_CHECKING:
    from devicecore.cv.image import Image

    Tensor = torch.Tensor

# In parts of 2**12, of blue, green and red: X, Y and Z by the white point.
WEIGHTS = ((778, 1541, 1777), (296, 2929, 871), (3575, 448, 73))
_BITS = 15
LIGHTNESS = (116 * 255 + 50) // 100
DARKEST = -((16 * 255 * (1 << _BITS) + 50) // 100)


def to_lab(src: Image, blue: int) -> Plan | None:
    """Plan a conversion to Lab."""
    if not has_colours(src) or src.dtype != "uint8":
        return None
    light, roots = _lab_tables()

    def run(images: Tensor) -> Tensor:
        table, root_of = light.on(images), roots.on(images)
        planes = [lookup_rows(table, plane) for plane in colours(images, blue)]
        sums = (
            planes[0] * shares[0] + planes[1] * shares[1] + planes[2] * shares[2]
            for shares in WEIGHTS
        )
        x, y, z = (lookup_rows(root_of, (each + 2048).bitwise_right_shift_(12)) for each in sums)
        half = 1 << (_BITS - 1)
        middle = (128 << _BITS) + half
        lightness = (y * LIGHTNESS + (DARKEST + half)).bitwise_right_shift_(_BITS)
        red_green = ((x - y) * 500 + middle).bitwise_right_shift_(_BITS)
        yellow_blue = ((y - z) * 200 + middle).bitwise_right_shift_(_BITS)
        return as_bytes(torch.stack((lightness, red_green, yellow_blue), -1))

    return Plan(run)


def to_luv(src: Image, blue: int) -> Plan | None:
    """Plan a conversion to Luv."""
    if not has_colours(src) or src.dtype != "uint8":
        return None
    table = _luv_grid()

    def run(images: Tensor) -> Tensor:
        planes = colours(images, blue)
        nodes, steps = table.on(images), (1, NODES, NODES * NODES)
        low = [plane.bitwise_right_shift(3) for plane in planes]
        first = low[0] + low[1] * steps[1] + low[2] * steps[2]
        # How far beyond its node each colour is, in sixteenths.
        beyond = [(plane & 7) * 2 for plane in planes]
        total = torch.zeros((*images.shape[:3], 3), dtype=torch.int32, device=images.device)
        for corner in product((0, 1), repeat=3):
            place, weight = first, torch.ones_like(planes[0])
            for is_next, step, share in zip(corner, steps, beyond, strict=True):
                place = place + is_next * step
                weight = weight * (share if is_next else 16 - share)
            total += lookup_rows(nodes, place) * weight.unsqueeze(-1)
        # Twelve bits of weights, rounded, and six that are cut off.
        return as_bytes((total + (1 << 11)).bitwise_right_shift_(18))

    return Plan(run)


@cache
def _lab_tables() -> tuple[Table, Table]:
    return Table(linear_light()), Table(cube_roots())


@cache
def _luv_grid() -> Table:
    return Table(grid().reshape(-1, 3))
