"""The standard streams of a command: they may be closed, full, or read by nobody any more."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from devicecore.errors import DeviceCoreError

if TYPE_CHECKING:
    from typing import TextIO

_LAST_STANDARD = 2


class LostOutputError(DeviceCoreError, OSError):
    """What a command wrote did not arrive."""


class Output:
    """Standard output, as a stream that remembers that something was lost.

    Args:
        stream: The real one; None in a process whose standard output is closed.

    Attributes:
        error: What was raised when something was lost, otherwise None.
    """

    def __init__(self, stream: TextIO | None) -> None:
        self._stream = stream
        self.error: OSError | None = None if stream is not None else OSError("it is closed")

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def isatty(self) -> bool:
        """Return whether a person reads it."""
        return self._stream is not None and self._stream.isatty()

    def write(self, text: str) -> int:
        """Write *text*.

        Raises:
            LostOutputError: It, or what was written before it, did not arrive.
        """
        if self._stream is None:
            raise LostOutputError(str(self.error))
        try:
            return self._stream.write(text)
        except OSError as error:
            self.error = error
            raise LostOutputError(str(error)) from error

    def flush(self) -> None:
        """Write what waits.

        Raises:
            LostOutputError: It did not arrive.
        """
        if self._stream is None:
            return
        try:
            self._stream.flush()
        except OSError as error:
            self.error = error
            raise LostOutputError(str(error)) from error


def fill_closed_descriptors() -> None:
    """Take the numbers of closed standard streams, so that no file or socket gets one."""
    with suppress(OSError):
        while (descriptor := os.open(os.devnull, os.O_RDWR)) <= _LAST_STANDARD:
            pass
        os.close(descriptor)


def say(text: str) -> None:
    """Print a line to standard error, if there is one that takes it."""
    if sys.stderr is not None:
        with suppress(OSError):
            print(text, file=sys.stderr, flush=True)


def give_up_what_waits() -> None:
    """Drop what a stream could not write: at its end, Python would try it again, and complain."""
    for stream in (sys.stdout, sys.stderr):
        if stream is None:
            continue
        try:
            stream.flush()
        except OSError:
            with suppress(OSError):
                nowhere = os.open(os.devnull, os.O_WRONLY)
                os.dup2(nowhere, stream.fileno())
                os.close(nowhere)
                stream.flush()
