"""What a long command is doing right now: one line on a terminal, nothing in a pipe."""

from __future__ import annotations

import sys
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import TextIO

_CLEAR = "\r\x1b[K"


@contextmanager
def progress(stream: TextIO | None = None) -> Iterator[Callable[[str], None]]:
    """Give a function that shows a few words in place of the last ones; they are gone at the end.

    Args:
        stream: Where; None for stderr.
    """
    target = stream or sys.stderr
    if target is None or not target.isatty():  # None where it is closed
        yield lambda _: None
        return

    def show(words: str) -> None:
        with suppress(OSError):
            target.write(f"{_CLEAR}{words} ...")
            target.flush()

    try:
        yield show
    finally:
        with suppress(OSError):
            target.write(_CLEAR)
            target.flush()
