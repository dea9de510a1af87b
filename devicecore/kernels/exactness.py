"""What is promised of a kernel's results, from the same bits to about the same."""

from __future__ import annotations

from typing import Literal, get_args

Exactness = Literal["exact", "lsb1", "tolerance", "close"]
"""How near a kernel comes to the CPU's answer, from the same bits to about the same."""

PROMISES: tuple[Exactness, ...] = get_args(Exactness)
_LOOSENESS = {promise: place for place, promise in enumerate(PROMISES)}


def is_within(promise: Exactness, accepted: Exactness) -> bool:
    """Return whether results of one promise are as near as another one demands."""
    return _LOOSENESS[promise] <= _LOOSENESS[accepted]
