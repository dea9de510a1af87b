"""`DeviceCoreError`, the base of all, and how errors write fixes and long lists."""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


_PIP = re.compile(r"\bpip[0-9.]*\b")


class DeviceCoreError(Exception):
    """Base of all errors of devicecore."""

    def _parts(self) -> tuple[str, ...]:
        """Return what was wrong, what is possible and what to do; empty parts are left out."""
        return tuple(str(argument) for argument in self.args)

    def __str__(self) -> str:
        wrong, *further = self._parts() or ("",)
        return "; ".join(filter(None, (wrong, *map(without_pip, further))))


def without_pip(fix: str) -> str:
    """Return *fix*, in a program that is frozen without its ways that need pip: it has none."""
    if not getattr(sys, "frozen", False) or not _PIP.search(fix):
        return fix
    parts = (
        ", or ".join(way for way in part.split(", or ") if not _PIP.search(way))
        for part in fix.split("; ")
    )
    return "; ".join(filter(None, parts))


def shorten(text: str, width: int) -> str:
    """Return *text*, cut to *width* characters with an ellipsis where it is longer."""
    return text if len(text) <= width else text[: width - 1] + "…"


def listing(names: Iterable[str], *, most: int = 12) -> str:
    """Return *names* for a message, cut after *most*: a cluster has thousands."""
    shown = list(names)
    rest = f" and {len(shown) - most} more" if len(shown) > most else ""
    return ", ".join(shown[:most]) + rest if shown else "none"
