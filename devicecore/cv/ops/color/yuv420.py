"""Conversions between BGR or RGB and YUV 4:2:0 (I420, YV12, NV12, NV21)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from devicecore.cv.plan import Plan
from devicecore.cv.torch_support.pixels import (
    as_bytes,
    channels_asked,
    colours,
    has_colours,
    pixels,
)

if TYPE_CHECKING:
    from devicecore.cv.image import Image

    Tensor = torch.Tensor

# BT.601 for television, in parts of 2**20: what luma, and the chroma of blue and of red, add.
_BITS = 20
_LUMA, _BLACK = 1220542, 16
_U_TO_BLUE, _U_TO_GREEN, _V_TO_GREEN, _V_TO_RED = 2116026, -409993, -852492, 1673527
# Of blue, green and red: what luma and chroma get, and the middle of it.
_TO_LUMA, _TO_U, _TO_V = (
    (102760, 528482, 269484),
    (460324, -305135, -155188),
    (-74448, -385875, 460324),
)
_GRAY = 128


def from_planes(src: Image, blue: int, asked: int, default: int, layout: str) -> Plan | None:
    """Plan a conversion of a luma plane with the chroma below it."""
    channels = channels_asked(asked, default)
    if not _is_whole(src) or channels is None:
        return None
    height, width = src.height // 3 * 2, src.width

    def run(images: Tensor) -> Tensor:
        luma = images[:, :height, :, 0].to(torch.int32).sub_(_BLACK).clamp_(min=0).mul_(_LUMA)
        # A pair of rows, and in them a pair of columns, for each value of chroma.
        cells = luma.view(len(images), height // 2, 2, width // 2, 2)
        u, v = _chroma(images[:, height:, :, 0].to(torch.int32) - _GRAY, layout)
        half = 1 << (_BITS - 1)
        shares = (u * _U_TO_BLUE, u * _U_TO_GREEN + v * _V_TO_GREEN, v * _V_TO_RED)
        result = (
            as_bytes(
                (cells + (share + half)[:, :, None, :, None]).bitwise_right_shift_(_BITS)
            ).view(luma.shape)
            for share in shares
        )
        return pixels(tuple(result), blue, channels)

    return Plan(run)


def to_planes(src: Image, blue: int, layout: str) -> Plan | None:
    """Plan a conversion to a luma plane with the chroma below it."""
    if src.dtype != "uint8" or not has_colours(src) or src.height % 2 or src.width % 2:
        return None

    def run(images: Tensor) -> Tensor:
        luma = _sum(colours(images, blue), _TO_LUMA, _BLACK)
        # The chroma of four pixels is that of the first one.
        corners = colours(images[:, ::2, ::2], blue)
        chroma = [_sum(corners, shares, _GRAY) for shares in (_TO_U, _TO_V)]
        if layout == "YV12":
            chroma.reverse()
        below = torch.stack(chroma, 1).view(len(images), src.height // 2, src.width)
        return as_bytes(torch.cat((luma, below), 1)).unsqueeze(-1)

    return Plan(run)


def _sum(planes: tuple[Tensor, ...], shares: tuple[int, int, int], middle: int) -> Tensor:
    total = planes[0] * shares[0] + planes[1] * shares[1] + planes[2] * shares[2]
    return (total + ((middle << _BITS) + (1 << (_BITS - 1)))).bitwise_right_shift_(_BITS)


def luma_plane(src: Image) -> Plan | None:
    """Plan a conversion to gray: the luma as it is."""
    if not _is_whole(src):
        return None
    height = src.height // 3 * 2
    return Plan(lambda images: images[:, :height].clone(memory_format=torch.contiguous_format))


def _is_whole(src: Image) -> bool:
    return src.dtype == "uint8" and src.channels == 1 and not src.height % 3 and not src.width % 2


def _chroma(below: Tensor, layout: str) -> tuple[Tensor, Tensor]:
    """Return U and V, each with half the rows and half the columns of luma."""
    count, rows, width = below.shape
    if layout.startswith("NV"):
        first, second = below.reshape(count, rows, width // 2, 2).unbind(-1)
    else:
        first, second = below.reshape(count, 2, rows, width // 2).unbind(1)
    return (first, second) if layout in {"NV12", "I420"} else (second, first)
