"""How much memory a process and a device have taken."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from devicecore.device import Device

_STATUS = "/proc/self/status"


def peak_bytes() -> int | None:
    """Return the most memory that this process has had at once, in bytes; None if nobody tells."""
    # On Linux `getrusage` counts the parent too, as it was when it made this process.
    return _high_water_mark() if Path(_STATUS).exists() else _peak_of_usage()


def _high_water_mark() -> int | None:
    text = Path(_STATUS).read_text(encoding="ascii", errors="replace")
    lines = (line.split() for line in text.splitlines() if line.startswith("VmHWM:"))
    return next((int(words[1]) << 10 for words in lines), None)


def _peak_of_usage() -> int | None:
    try:
        from resource import RUSAGE_SELF, getrusage
    except ModuleNotFoundError:  # Windows
        return None
    peak = getrusage(RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak << 10


def taken_bytes(device: Device) -> int | None:
    """Return how much of the memory of *device* is taken, in bytes; None if it does not tell.

    A device that works in the host's memory does not: what it takes is part of this process.
    """
    if device.device_class == "CPU":
        return None
    stats = device.memory_stats()
    if {"free", "total"} <= set(stats):
        return stats["total"] - stats["free"]
    return stats.get("allocated")


def growth(before: int | None, after: int | None) -> int | None:
    """Return by how much it grew, in bytes; None where either is not known."""
    return None if before is None or after is None else max(0, after - before)
