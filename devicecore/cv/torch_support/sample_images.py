"""`sample_images`: random images of integers, for the samples of filters."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator


def sample_images() -> Iterator[Any]:
    """Yield a small image of three channels for each integer type that filters take."""
    chance = np.random.default_rng(3)
    for dtype in (np.uint8, np.uint16, np.int16):
        limits = np.iinfo(dtype)
        yield chance.integers(limits.min, limits.max, (13, 19, 3), dtype, endpoint=True)
