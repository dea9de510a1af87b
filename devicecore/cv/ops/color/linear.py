"""Linear color conversions between BGR or RGB and GRAY, XYZ, YCrCb and YUV."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from devicecore.cv.plan import Plan
from devicecore.cv.torch_support.dtypes import saturate
from devicecore.cv.torch_support.pixels import channels_asked, colours, has_colours, pixels

if TYPE_CHECKING:
    from collections.abc import Sequence

    from devicecore.cv.image import Image

    Tensor = torch.Tensor

_HALVES = {"uint8": 128, "uint16": 32768}
_TYPES = {"uint8": torch.uint8, "uint16": torch.uint16}
# In parts of 2**15: blue, green, red.
GRAY = (3735, 19235, 9798)
_GRAY_SHARES = (0.114, 0.587, 0.299)
# In parts of 2**14.
LUMA = (1868, 9617, 4899)
RED_EXCESS, BLUE_EXCESS = {"YCrCb": 11682, "YUV": 14369}, {"YCrCb": 9241, "YUV": 8061}
# Of the excess of red and of blue: what red, green, green and blue get.
BACK = {"YCrCb": (22987, -11698, -5636, 29049), "YUV": (18678, -9519, -6472, 33292)}
# In parts of 2**12: blue, green, red of X, Y, Z, and back.
XYZ = ((739, 1465, 1689), (296, 2929, 871), (3892, 488, 79))
FROM_XYZ = ((228, -836, 4331), (-3970, 7684, 170), (13273, -6296, -2042))


def to_gray(src: Image, blue: int) -> Plan | None:
    """Plan a conversion to one channel."""
    if not has_colours(src):
        return None
    if src.dtype in _TYPES:
        kind = _TYPES[src.dtype]
        return Plan(lambda images: _sum(colours(images, blue), GRAY, 15).to(kind).unsqueeze(-1))
    if src.dtype != "float32":
        return None

    def run(images: Tensor) -> Tensor:
        planes = colours(images, blue, torch.float32)
        parts = [plane * share for plane, share in zip(planes, _GRAY_SHARES, strict=True)]
        return (parts[0] + parts[1] + parts[2]).unsqueeze(-1)

    return Plan(run, "tolerance")


def from_gray(src: Image, asked: int, default: int) -> Plan | None:
    """Plan a conversion of one channel to three equal ones."""
    channels = channels_asked(asked, default)
    if src.channels != 1 or channels is None or src.dtype not in {*_TYPES, "float32"}:
        return None

    def run(images: Tensor) -> Tensor:
        return pixels((images[..., 0],) * 3, 0, channels)

    return Plan(run)


def to_luma(src: Image, blue: int, space: str) -> Plan | None:
    """Plan a conversion to YCrCb or to YUV."""
    if not has_colours(src) or src.dtype not in _TYPES:
        return None
    kind, half = _TYPES[src.dtype], (_HALVES[src.dtype] << 14) + (1 << 13)
    of_red, of_blue = RED_EXCESS[space], BLUE_EXCESS[space]

    def run(images: Tensor) -> Tensor:
        planes = colours(images, blue)
        luma = _sum(planes, LUMA, 14)
        red = (planes[2] - luma).mul_(of_red).add_(half).bitwise_right_shift_(14)
        blues = (planes[0] - luma).mul_(of_blue).add_(half).bitwise_right_shift_(14)
        chroma = (red, blues) if space == "YCrCb" else (blues, red)
        return saturate(torch.stack((luma, *chroma), -1), kind)

    return Plan(run)


def from_luma(src: Image, blue: int, asked: int, space: str) -> Plan | None:
    """Plan a conversion of YCrCb or YUV."""
    channels = channels_asked(asked, 3)
    if src.channels != 3 or channels is None or src.dtype not in _TYPES:
        return None
    kind, half = _TYPES[src.dtype], _HALVES[src.dtype]
    to_red, to_green, too_to_green, to_blue = BACK[space]
    places = (1, 2) if space == "YCrCb" else (2, 1)

    def run(images: Tensor) -> Tensor:
        luma = images[..., 0].to(torch.int32)
        red, blues = (images[..., place].to(torch.int32) - half for place in places)
        result = (
            luma + _rounded(blues * to_blue, 14),
            luma + _rounded(red * to_green + blues * too_to_green, 14),
            luma + _rounded(red * to_red, 14),
        )
        return pixels(tuple(saturate(plane, kind) for plane in result), blue, channels)

    return Plan(run)


def to_xyz(src: Image, blue: int) -> Plan | None:
    """Plan a conversion to XYZ."""
    if not has_colours(src) or src.dtype not in _TYPES:
        return None
    kind = _TYPES[src.dtype]

    def run(images: Tensor) -> Tensor:
        planes = colours(images, blue)
        return saturate(torch.stack([_sum(planes, shares, 12) for shares in XYZ], -1), kind)

    return Plan(run)


def from_xyz(src: Image, blue: int, asked: int) -> Plan | None:
    """Plan a conversion of XYZ."""
    channels = channels_asked(asked, 3)
    if src.channels != 3 or channels is None or src.dtype not in _TYPES:
        return None
    kind = _TYPES[src.dtype]

    def run(images: Tensor) -> Tensor:
        planes = colours(images, 0)
        result = (saturate(_sum(planes, shares, 12), kind) for shares in FROM_XYZ)
        return pixels(tuple(result), blue, channels)

    return Plan(run)


def _sum(planes: Sequence[Tensor], shares: Sequence[int], bits: int) -> Tensor:
    """Return a sum of planes with shares in parts of ``2**bits``."""
    total = planes[0] * shares[0]
    for plane, share in zip(planes[1:], shares[1:], strict=True):
        total.add_(plane, alpha=share)
    return _rounded(total, bits)


def _rounded(x: Tensor, bits: int) -> Tensor:
    return x.add_(1 << (bits - 1)).bitwise_right_shift_(bits)
