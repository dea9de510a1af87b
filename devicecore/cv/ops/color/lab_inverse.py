"""Conversions of Lab and Luv to BGR or RGB."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import torch

from devicecore.cv.ops.color.tables import lab_inverse
from devicecore.cv.plan import Plan
from devicecore.cv.table import Table
from devicecore.cv.torch_support.pixels import channels_asked, colours, lookup_rows, pixels

if TYPE_CHECKING:
    from collections.abc import Callable

    from devicecore.cv.image import Image

    Tensor = torch.Tensor
    Triple = tuple[Tensor, Tensor, Tensor]

# In parts of 2**12, of X, Y and Z: blue, green and red; for Lab by the white point.
OF_LAB = ((217, -836, 4715), (-3773, 7684, 185), (12615, -6296, -2223))
_OF_LUV = ((228, -836, 4331), (-3970, 7684, 170), (13273, -6296, -2042))
_BITS = 14
_BRIGHTEST = 4095
_ONE = lab_inverse.ONE


def from_space(src: Image, blue: int, asked: int, space: str) -> Plan | None:
    """Plan a conversion of Lab or Luv."""
    channels = channels_asked(asked, 3)
    if src.channels != 3 or channels is None or src.dtype != "uint8":
        return None
    to_xyz: Callable[[Tensor], Triple] = _xyz_of_lab if space == "Lab" else _xyz_of_luv
    weights = OF_LAB if space == "Lab" else _OF_LUV
    values = _values()

    def run(images: Tensor) -> Tensor:
        x, y, z = to_xyz(images)
        result = []
        for shares in weights:
            light = x * shares[0] + y * shares[1] + z * shares[2] + (1 << (_BITS - 1))
            result.append(
                lookup_rows(
                    values.on(images), light.bitwise_right_shift_(_BITS).clamp_(0, _BRIGHTEST)
                )
            )
        return pixels(tuple(result), blue, channels)

    return Plan(run)


def _xyz_of_lab(images: Tensor) -> Triple:
    lightness, a, b = colours(images, 0)
    all_y, all_roots = (table.on(images) for table in _lightness())
    cubes, root = _cubes().on(images), lookup_rows(all_roots, lightness)
    # OpenCV's way to divide by 500 and by 200.
    of_a = (a * (5 * 53687) + (1 << 7)).bitwise_right_shift_(13) - 128 * _ONE // 500
    of_b = (b * 41943 + (1 << 4)).bitwise_right_shift_(9) - 128 * _ONE // 200 + 1
    x = lookup_rows(cubes, root + of_a - lab_inverse.LOWEST_SUM)
    z = lookup_rows(cubes, root - of_b - lab_inverse.LOWEST_SUM)
    return x, lookup_rows(all_y, lightness), z


def _xyz_of_luv(images: Tensor) -> Triple:
    lightness, u, v = colours(images, 0)
    y = lookup_rows(_lightness()[0].on(images), lightness).long()
    of_u, of_v = (table.on(images).view(-1) for table in _luv_chroma())
    share_of_v = lookup_rows(of_v, lightness * 256 + v).long()
    product = lookup_rows(of_u, lightness * 256 + u) * share_of_v
    x = _by(y * _by(product, _ONE), _ONE)
    # X, 15 Y and 3 Z together are known from v: what remains is Z.
    rest = share_of_v * lightness * (12 * 13 * 100 * (_ONE // 1024)) - product * (255 // 3)
    scaled = _by(y * (_by(rest, _ONE) - 5 * 255 * _ONE), _ONE)
    z = _by(scaled, 256) + _by(scaled, 65536)  # by 255, nearly
    return x.clamp_(0, 2 * _ONE), y, z.clamp_(0, 2 * _ONE)


def _by(x: Tensor, number: int) -> Tensor:
    return torch.div(x, number, rounding_mode="trunc")


@cache
def _lightness() -> tuple[Table, Table]:
    y, root = lab_inverse.lightness()
    return Table(y), Table(root)


@cache
def _cubes() -> Table:
    return Table(lab_inverse.cubes())


@cache
def _values() -> Table:
    return Table(lab_inverse.values())


@cache
def _luv_chroma() -> tuple[Table, Table]:
    of_u, of_v = lab_inverse.luv_chroma()
    return Table(of_u), Table(of_v)
