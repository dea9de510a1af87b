"""Children that were started while file descriptor 2 went to a file: what they say is passed on.

They inherited the file, and would write to it for as long as they live.
"""

from __future__ import annotations

import os
import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import BinaryIO

_EVERY_S = 0.1


def pass_on(file: BinaryIO, stderr: int) -> None:
    """Write to *stderr* what children still write to *file*, then close both.

    Args:
        file: What stderr was, opened to read and write.
        stderr: A descriptor of the real one; this function owns it from now on.
    """
    if not _has_children() or not _is_held(file):
        os.close(stderr)
        file.close()
        return
    start = os.fstat(file.fileno()).st_size
    follow = threading.Thread(
        target=_follow, args=(file, start, stderr), name="devicecore-stderr", daemon=True
    )
    follow.start()


def _follow(file: BinaryIO, start: int, stderr: int) -> None:
    stop = threading.Event()
    held = True
    with suppress(OSError):
        while held:
            stop.wait(_EVERY_S)
            held = _is_held(file)  # asked first: what is written last is read below
            while chunk := os.pread(file.fileno(), 1 << 16, start):
                start += len(chunk)
                os.write(stderr, chunk)
    os.close(stderr)
    file.close()


def _has_children() -> bool:
    if not hasattr(os, "waitid"):
        return True
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return False
    return True


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
