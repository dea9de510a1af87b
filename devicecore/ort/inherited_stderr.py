"""Children that were started while file descriptor 2 went to a file: what they say is passed on.

They inherited the file, and write to it for as long as they live.
"""

from __future__ import annotations

import atexit
import os
import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import BinaryIO

_EVERY_S = 0.1
_CHUNK = 1 << 16


def ended_children() -> Any:
    """Return what changes when a child of this process ends; None where nothing tells."""
    try:
        import resource  # late: Windows has none
    except ImportError:
        return None
    return resource.getrusage(resource.RUSAGE_CHILDREN)


def pass_on(
    file: BinaryIO, start: int, stderr: int, ended: Any, is_ours: Callable[[bytes], bool]
) -> None:
    """Write to *stderr* what children have written to *file*, or still will, then close both.

    Nothing tells who wrote a line. So all that cannot be ours is passed on, if a child may have
    written: one that holds the file, or one that has ended.

    Args:
        file: What stderr was, opened to read and write.
        start: Where in it to begin.
        stderr: A descriptor of the real one; this function owns it from now on.
        ended: What `ended_children` returned before stderr was *file*.
        is_ours: Whether a line is one that was collected, and that nobody else has to see.
    """
    follower = _Follower(file, start, stderr)
    has_children, one_has_ended = _children()
    one_has_ended |= ended is None or ended != ended_children()
    is_held = (has_children or one_has_ended) and _is_held(file)
    if is_held or one_has_ended:
        follower.copy(is_ours)
    if not is_held:
        follower.close()
        return
    threading.Thread(target=follower.run, name="devicecore-stderr", daemon=True).start()


class _Follower:
    """Copies what is written to a file to a descriptor, until nobody writes any more."""

    def __init__(self, file: BinaryIO, start: int, stderr: int) -> None:
        self._file = file
        self._start = start
        self._stderr = stderr
        self._lock = threading.Lock()

    def copy(self, is_left_out: Callable[[bytes], bool] | None = None) -> None:
        """Copy what is there, but for lines that are left out."""
        with self._lock, suppress(OSError):
            while not self._file.closed:
                chunk = os.pread(self._file.fileno(), _CHUNK, self._start)
                if is_left_out and len(chunk) == _CHUNK and b"\n" in chunk:
                    chunk = chunk[: chunk.rindex(b"\n") + 1]  # whole lines
                if not chunk:
                    return
                self._start += len(chunk)
                if is_left_out:
                    lines = chunk.splitlines(keepends=True)
                    chunk = b"".join(line for line in lines if not is_left_out(line))
                while chunk:
                    chunk = chunk[os.write(self._stderr, chunk) :]

    def run(self) -> None:
        """Copy until no other process holds the file, or this one ends."""
        owner = os.getpid()

        def at_exit() -> None:
            if os.getpid() == owner:  # a forked child has this too
                self.copy()

        atexit.register(at_exit)
        stop = threading.Event()
        held = True
        while held:
            stop.wait(_EVERY_S)
            held = _is_held(self._file)  # asked first: what is written last is copied below
            self.copy()
        atexit.unregister(at_exit)
        self.close()

    def close(self) -> None:
        """Close both."""
        with self._lock:
            os.close(self._stderr)
            self._file.close()


def _children() -> tuple[bool, bool]:
    """Return whether there are any, and whether one of them has ended and nobody knows yet."""
    if not hasattr(os, "waitid"):
        return True, True
    try:
        ended = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return False, False
    return True, ended is not None


def _is_held(file: BinaryIO) -> bool:
    """Return whether another process has *file* as its stderr; True where nobody can tell."""
    if sys.platform != "linux":
        return True
    own = os.fstat(file.fileno())
    for place in Path("/proc").glob("[0-9]*"):
        if place.name == str(os.getpid()):
            continue
        with suppress(OSError):
            facts = (place / "fd" / "2").stat()
            if (facts.st_dev, facts.st_ino) == (own.st_dev, own.st_ino):
                return True
    return False
