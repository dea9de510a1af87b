"""Tables as wide as the terminal: 80 columns and plain text in a pipe, bold if there is rich."""

from __future__ import annotations

import os
import re
import sys
import textwrap
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import TextIO

WIDTH = 80
FIX_LABEL = "fix: "
_GAP = "  "
_NARROWEST = 24
_PIECE = re.compile(r"""(?:\B"[^"]*"|\B'[^']*'|(?<=[=,:\[{(])"[^"]*"|(?<=[=,:\[{(])'[^']*'|\S)+""")
# No shell of Windows continues a line as the others do.
_CONTINUED = "" if sys.platform == "win32" else " \\"
_COMMAND = re.compile(
    r"(?:\w+=\S* +)*(?:sudo +)?(?:pip|python|uv|export|devicecore|apt|ldconfig)\S* "
)


def print_table(
    rows: Sequence[Sequence[str]],
    out: TextIO,
    *,
    indent: str = "  ",
    last_wraps: bool = True,
    wrap: Callable[[str, int, int], list[str]] | None = None,
) -> None:
    """Print *rows* in columns, each as wide as its widest cell; the last one is wrapped.

    Args:
        rows: Cells of one line each, as many in every row.
        out: Where.
        indent: What every line starts with.
        last_wraps: Whether the last column is wrapped at the width of *out* or left as it is.
        wrap: How it is wrapped; None for `wrapped`.
    """
    if not rows:
        return
    widths = [max(map(len, column)) for column in list(zip(*rows, strict=True))[:-1]]
    left = len(indent) + sum(widths) + len(_GAP) * len(widths)
    columns = width_of(out)
    for row in rows:
        lead = indent + "".join(
            cell.ljust(width) + _GAP for cell, width in zip(row[:-1], widths, strict=True)
        )
        text = (wrap or wrapped)(row[-1], left, columns) if last_wraps else [row[-1]]
        for number, line in enumerate(text or [""]):
            print(((lead if not number else " " * left) + line).rstrip(), file=out)


def width_of(out: TextIO) -> int:
    """Return the columns of the terminal that *out* writes to; 80 where it is none."""
    if not out.isatty():
        return WIDTH
    try:
        return os.get_terminal_size(out.fileno()).columns or WIDTH
    except (OSError, ValueError):  # it only says that it is one
        return WIDTH


def wrapped(text: str, left: int, columns: int = WIDTH) -> list[str]:
    """Return *text* in lines that end within *columns* when they start at column *left*."""
    return textwrap.wrap(
        " ".join(text.split()),
        max(columns - left, _NARROWEST),
        break_long_words=False,
        break_on_hyphens=False,
    )


def wrapped_fix(text: str, left: int, columns: int = WIDTH) -> list[str]:
    """Return a fix as `wrapped` does, so that the commands in it can still be copied.

    Each part has a line of its own. A command that goes over several lines says so to the shell,
    and what stands in quotes is not broken.
    """
    width = max(columns - left, _NARROWEST)
    lines: list[str] = []
    for part in _parts(text):
        end = _CONTINUED if _COMMAND.match(f"{part} ") else ""
        if len(part) <= width or (_COMMAND.match(f"{part} ") and not end):
            lines.append(part)
            continue
        line = ""
        for piece in _PIECE.findall(part):
            if line and len(line) + 1 + len(piece) > width - len(end):
                lines.append(line + end)
                line = ""
            line = f"{line} {piece}" if line else piece
        lines.append(line)
    return lines


def wrapped_label(text: str, left: int, columns: int = WIDTH) -> list[str]:
    """Return *text* as `wrapped` does; one that starts with ``fix:`` as `wrapped_fix` does."""
    fix = text.removeprefix(FIX_LABEL)
    if fix == text:
        return wrapped(text, left, columns)
    first, *others = wrapped_fix(fix, left + len(FIX_LABEL), columns)
    return [FIX_LABEL + first, *(" " * len(FIX_LABEL) + line for line in others)]


def _parts(text: str) -> list[str]:
    """Return the parts of a fix that a semicolon ends, with it, but for one in quotes."""
    parts = [""]
    for piece in _PIECE.findall(text):
        parts[-1] = f"{parts[-1]} {piece}" if parts[-1] else piece
        if piece.endswith(";"):
            parts.append("")
    return [part for part in parts if part]


def heading(text: str, out: TextIO) -> None:
    """Print a heading, in bold on a terminal that has rich."""
    if out.isatty():
        try:
            from rich.console import Console
        except ModuleNotFoundError:
            pass
        else:
            Console(file=out, highlight=False).print(text, style="bold")
            return
    print(text, file=out)


def size(memory_bytes: int) -> str:
    """Return an amount of memory for a person, such as ``"79.2 GiB"``."""
    return f"{memory_bytes / 2**30:.1f} GiB" if memory_bytes else ""
