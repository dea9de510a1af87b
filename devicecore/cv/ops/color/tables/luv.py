"""OpenCV's table for Luv: what every eighth value of blue, green and red becomes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from devicecore.cv.ops.color.tables.lab import root_or_line

if TYPE_CHECKING:
    from numpy.typing import NDArray

NODES = 33
# Of blue, green and red: X, Y and Z.
_WEIGHTS = (
    (0.180423, 0.357580, 0.412453),
    (0.072169, 0.715160, 0.212671),
    (0.950227, 0.119193, 0.019334),
)
_WHITE = (0.950456, 1.0, 1.088754)
_ONE = np.float32(1 << 14)
_EPSILON = np.finfo(np.float32).eps


def grid() -> NDArray[np.int32]:
    """Return L, u and v in parts of ``2**14`` at each node, of shape (red, green, blue, 3)."""
    value = (np.arange(NODES, dtype=np.float32) / np.float32(NODES - 1)).astype(np.float64)
    bent = ((value + 0.055) / 1.055) ** 2.4
    light = np.where(value <= 0.04045, value / 12.92, bent).astype(np.float32)
    blue, green, red = light[None, None, :], light[None, :, None], light[:, None, None]
    x, y, z = (
        blue * np.float32(b) + green * np.float32(g) + red * np.float32(r) for b, g, r in _WEIGHTS
    )
    lightness = root_or_line(y) * np.float32(116) - np.float32(16)
    share = np.float32(52) / np.maximum(x + np.float32(15) * y + np.float32(3) * z, _EPSILON)
    of_white = np.float32(1) / np.float32(_WHITE[0] + 15 * _WHITE[1] + 3 * _WHITE[2])
    white_u = of_white * np.float32(52) * np.float32(_WHITE[0])
    white_v = of_white * np.float32(117) * np.float32(_WHITE[1])
    u = lightness * (x * share - white_u)
    v = lightness * (np.float32(2.25) * y * share - white_v)
    found = np.stack(
        (
            _ONE * lightness / np.float32(100),
            _ONE * (u + np.float32(134)) / np.float32(354),
            _ONE * (v + np.float32(140)) / np.float32(262),
        ),
        -1,
    )
    whole: NDArray[np.int32] = np.rint(found).astype(np.int32)
    return whole
