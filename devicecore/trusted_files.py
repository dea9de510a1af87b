"""Files that only this user can have written: others could put libraries and programs there."""

from __future__ import annotations

import json
import os
import stat
from contextlib import suppress
from typing import TYPE_CHECKING, Any, BinaryIO

if TYPE_CHECKING:
    from pathlib import Path

MOST_JSON_BYTES = 1 << 24

_BY_OTHERS = stat.S_IWGRP | stat.S_IWOTH
# A pipe or a device is never waited for, and no other file is read in a file's place.
_OPEN_FLAGS = (
    os.O_RDONLY
    | getattr(os, "O_NONBLOCK", 0)
    | getattr(os, "O_CLOEXEC", 0)
    | getattr(os, "O_NOCTTY", 0)
    | getattr(os, "O_BINARY", 0)
)


def why_untrusted(folder: Path) -> str:
    """Return why others may have written what lies in *folder*, or an empty string.

    Raises:
        OSError: There is no such folder, or nobody may look at it.
    """
    facts = folder.stat()
    if not stat.S_ISDIR(facts.st_mode):
        return "is no folder"
    if not _is_own(facts):
        return "belongs to somebody else"
    if not is_closed(facts):
        return "can be written to by others, and what lies there is run as programs"
    return ""


def is_closed(facts: os.stat_result) -> bool:
    """Return whether what has these facts belongs to this user, and nobody else can write to it."""
    return _is_own(facts) and not (hasattr(os, "getuid") and facts.st_mode & _BY_OTHERS)


def open_regular(path: Path, *, through_links: bool = True) -> BinaryIO:
    """Open a regular file to read; never waits, whatever lies there instead.

    Args:
        path: The file.
        through_links: Whether a link to a file is one.

    Raises:
        OSError: There is none, or it cannot be read.
    """
    # Looked at first as well: opening some devices has effects.
    _check_regular(path, path.stat() if through_links else path.lstat())
    no_links = 0 if through_links else getattr(os, "O_NOFOLLOW", 0)
    descriptor = os.open(path, _OPEN_FLAGS | no_links)
    file = os.fdopen(descriptor, "rb")
    try:
        _check_regular(path, os.fstat(descriptor))
    except OSError:
        file.close()
        raise
    return file


def read_json(path: Path, *, most_bytes: int = MOST_JSON_BYTES) -> Any:
    """Return what a JSON file of this user in a trusted folder holds.

    None where there is no such file, or something else in its place: a folder, a pipe, a link, a
    file of somebody else or that others can write to, a larger one, or one that is no JSON.
    """
    try:
        with open_regular(path, through_links=False) as file:
            facts = os.fstat(file.fileno())
            if not is_closed(facts) or facts.st_size > most_bytes:
                return None
            return json.loads(file.read(most_bytes))
    except (OSError, ValueError, RecursionError):
        return None


def set_aside(path: Path) -> None:
    """Rename what is in the way at *path*, if anything is: who made it finds it beside.

    Raises:
        OSError: It cannot be renamed.
    """
    if not os.path.lexists(path):
        return
    number = 0
    while os.path.lexists(aside := path.with_name(f"{path.name}.aside{number or ''}")):
        number += 1
    with suppress(FileNotFoundError):
        path.rename(aside)


def _is_own(facts: os.stat_result) -> bool:
    return not hasattr(os, "getuid") or facts.st_uid == os.getuid()


def _check_regular(path: Path, facts: os.stat_result) -> None:
    if not stat.S_ISREG(facts.st_mode):
        msg = "it is no regular file"
        raise OSError(0, msg, str(path))
