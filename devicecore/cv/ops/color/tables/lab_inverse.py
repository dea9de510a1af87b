"""OpenCV's tables from Lab and Luv to sRGB, all of whole numbers; ``ONE`` is a full X, Y or Z."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Whole = NDArray[np.int32]

ONE = 1 << 14
# The sums `cubes` is asked for begin with this one.
LOWEST_SUM = -8145
_HIGHEST_SUM = ONE * 9 // 4 + LOWEST_SUM
# Up to here, L and the cube root are straight.
_DARK, _STRAIGHT_BELOW = 20, 3390
_LIGHTS = 4096
# D65: X and Z of white where Y is 1.
_WHITE = (0.950456, 1.0, 1.088754)
# Where u and v of a byte begin, and how much a whole byte is.
_U_STARTS, _U_RANGE = np.float32(-134), np.float32(354)
_V_STARTS, _V_RANGE = np.float32(-140), np.float32(262)


def lightness() -> tuple[Whole, Whole]:
    """Return Y, and what stands in for its cube root, for each L."""
    value = np.arange(256)
    straight_y = _single(value * ONE * 180) / _single(17 * 29**3)
    offset = _single(16) / _single(116)
    straight_root = _single(ONE) * (offset + _single(value * 5) / _single(3 * 17 * 29))
    root = _single(value * 100 * ONE) / _single(255 * 116) + _single(16 * ONE) / _single(116)
    y = root * root * root / _single(ONE * ONE)
    is_dark = value <= _DARK
    return (
        np.rint(np.where(is_dark, straight_y, y)).astype(np.int32),
        np.rint(np.where(is_dark, straight_root, root)).astype(np.int32),
    )


def cubes() -> Whole:
    """Return X or Z for each cube root from `LOWEST_SUM` on, each quotient cut towards zero."""
    root = np.arange(LOWEST_SUM, _HIGHEST_SUM)
    straight = np.fix(root * 108 / 841).astype(np.int64) - ONE * 16 // 116 * 108 // 841
    cube = root * root // ONE * root // ONE
    return np.where(root <= _STRAIGHT_BELOW, straight, cube).astype(np.int32)


def values() -> NDArray[np.uint8]:
    """Return the value of sRGB for each linear light of 4096."""
    light = np.arange(_LIGHTS) / _LIGHTS
    bent = light ** (1 / 2.4) * 1.055 - 0.055
    value = np.where(light <= 0.0031308, light * 12.92, bent).astype(np.float32)
    result: NDArray[np.uint8] = np.rint(value * np.float32(255)).astype(np.uint8)
    return result


def luv_chroma() -> tuple[Whole, Whole]:
    """Return what X is proportional to for each L and u, and Y for each L and v."""
    light = (_single(np.arange(256) * 100) / _single(255))[:, None]
    byte = _single(np.arange(256))
    of_white = _single(1) / _single(_WHITE[0] + 15 * _WHITE[1] + 3 * _WHITE[2])
    white_u = of_white * _single(52) * _single(_WHITE[0])
    white_v = of_white * _single(117) * _single(_WHITE[1])
    u = byte * _U_RANGE / _single(255) + _U_STARTS
    v = byte * _V_RANGE / _single(255) + _V_STARTS
    of_u = _single(9) * (u + light * white_u) * _single(ONE // 1024)
    quarter = _single(0.25)
    with np.errstate(divide="ignore"):
        of_v = (quarter / (v + light * white_v)).clip(-quarter, quarter) * _single(ONE * 1024)
    return np.rint(of_u).astype(np.int32), np.rint(of_v).astype(np.int32)


def _single(value: Any) -> Any:
    return np.float32(value)
