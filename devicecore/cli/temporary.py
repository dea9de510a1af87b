"""A folder for the time of a command, or one line on why there is none."""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from devicecore.errors import DeviceCoreError

if TYPE_CHECKING:
    from collections.abc import Iterator


class TemporaryFolderError(DeviceCoreError, OSError):
    """A command needs a folder for its time, and none can be made."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(reason)

    def __str__(self) -> str:
        fix = "let TMPDIR name a folder that can be written, with room in it"
        return f"no temporary folder can be made ({self.reason}); {fix}"


@contextmanager
def temporary_folder() -> Iterator[Path]:
    """Give a new folder that is deleted when the block ends.

    Raises:
        TemporaryFolderError: There is no place for it.
    """
    try:
        folder = TemporaryDirectory(prefix="devicecore-", ignore_cleanup_errors=True)
    except OSError as error:
        raise TemporaryFolderError(error.strerror or str(error)) from None
    with folder as name:
        yield Path(name)
