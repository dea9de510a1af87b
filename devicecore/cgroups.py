"""The limits of the control groups that this process is in: those of all around it count."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Read = Callable[[str], str]

_ESCAPE = re.compile(r"\\([0-7]{3})")
# Where control groups usually are, should /proc not say.
_USUAL = {"": "/sys/fs/cgroup", "cpu": "/sys/fs/cgroup/cpu", "memory": "/sys/fs/cgroup/memory"}


def cpu_limit(read: Read) -> float:
    """Return how many CPUs the control groups allow at most; infinity where they do not say.

    Args:
        read: Returns what a file holds, stripped; an empty string where there is none.
    """
    limits = [read(f"{folder}/cpu.max").split() for folder in _folders(read, "")]
    limits += [
        [read(f"{folder}/cpu.cfs_quota_us"), read(f"{folder}/cpu.cfs_period_us")]
        for folder in _folders(read, "cpu")
    ]
    return min((_quota(*limit[:2]) for limit in limits), default=math.inf)


def memory_limit(read: Read) -> float:
    """Return how many bytes the control groups allow at most; infinity where they do not say."""
    texts = [read(f"{folder}/memory.max") for folder in _folders(read, "")]
    texts += [read(f"{folder}/memory.limit_in_bytes") for folder in _folders(read, "memory")]
    return min((int(text) for text in texts if text.isdecimal()), default=math.inf)


def _quota(quota: str = "", period: str = "") -> float:
    if quota.isdecimal() and period.isdecimal() and int(period):
        return int(quota) / int(period)
    return math.inf


def _folders(read: Read, controller: str) -> Iterator[str]:
    """Yield the folders of this process's group and of all around it, for version 1 or 2.

    Args:
        read: See `cpu_limit`.
        controller: One of version 1; an empty string for version 2.
    """
    path = _path(read, controller)
    mounts = list(_mounts(read, controller)) or [("/", _USUAL[controller])]
    # The same groups may be mounted several times, each time from another one of them on.
    around = [(root, mount) for root, mount in mounts if _is_around(root, path)]
    for root, mount in around or mounts[:1]:
        inside = path.removeprefix(root.rstrip("/")) if around else ""
        parts = [part for part in inside.split("/") if part]
        if ".." in parts:  # it is outside of what this namespace shows
            parts = []
        for length in range(len(parts), -1, -1):
            yield "/".join((mount, *parts[:length]))


def _is_around(root: str, path: str) -> bool:
    return f"{path.rstrip('/')}/".startswith(f"{root.rstrip('/')}/")


def _path(read: Read, controller: str) -> str:
    for line in read("/proc/self/cgroup").splitlines():
        _, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if controller in controllers.split(","):
            return path
    return "/"


def _mounts(read: Read, controller: str) -> Iterator[tuple[str, str]]:
    """Yield which group is at the top of each of the controller's file systems, and where."""
    for line in read("/proc/self/mountinfo").splitlines():
        before, _, after = line.partition(" - ")
        fields, (kind, *rest) = before.split(" "), after.split(" ") or [""]
        wanted = "cgroup" if controller else "cgroup2"
        options = rest[-1].split(",") if rest else []
        if fields[4:] and kind == wanted and (not controller or controller in options):
            root, mount = fields[3:5]
            yield _unescaped(root), _unescaped(mount)


def _unescaped(text: str) -> str:
    return _ESCAPE.sub(lambda found: chr(int(found[1], 8)), text)
