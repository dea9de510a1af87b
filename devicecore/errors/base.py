"""`DeviceCoreError`, the base of all, and how errors write long lists."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


class DeviceCoreError(Exception):
    """Base of all errors of devicecore."""

    def _parts(self) -> tuple[str, ...]:
        """Return what was wrong, what is possible and what to do; empty parts are left out."""
        return tuple(str(argument) for argument in self.args)

    def __str__(self) -> str:
        return "; ".join(part for part in self._parts() if part)


def shorten(text: str, width: int) -> str:
    """Return *text*, cut to *width* characters with an ellipsis where it is longer."""
    return text if len(text) <= width else text[: width - 1] + "…"


def listing(names: Iterable[str], *, most: int = 12) -> str:
    """Return *names* for a message, cut after *most*: a cluster has thousands."""
    shown = list(names)
    rest = f" and {len(shown) - most} more" if len(shown) > most else ""
    return ", ".join(shown[:most]) + rest if shown else "none"
