"""`MigrationReport`: counts the calls of each path; prints as text, JSON and HTML."""

from __future__ import annotations

import html
import json
import threading
from collections import Counter
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from attrs import asdict, field, frozen

from devicecore.errors import shorten
from devicecore.fork import rearm_after_fork

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

# A framework's words may differ each time, as the addresses and the sizes in them do.
MOST_REASONS: Final = 32
_MOST_LETTERS: Final = 300
_OTHERS: Final = "(other reasons)"


class Tally:
    """Counts what becomes of the calls of one path; any thread may do so.

    Args:
        path: The call path.
        device: Where the plan wants such calls.
    """

    def __init__(self, path: str, device: str) -> None:
        self.path = path
        self.device = device
        self._lock = threading.Lock()
        self.told: Callable[[], None] | None = None
        self._begin()
        self._before = self._row()
        rearm_after_fork(self)

    def after_fork(self) -> None:
        """Make a lock that no thread of the parent holds."""
        self._lock = threading.Lock()
        self._before = self._row()

    def since_fork(self) -> CallStats:
        """Return what this process alone has counted, and none that it was forked from."""
        now, old = self.row(), self._before
        reasons = {why: n - old.reasons.get(why, 0) for why, n in now.reasons.items()}
        return CallStats(
            path=now.path,
            device=now.device,
            calls=now.calls - old.calls,
            migrated=now.migrated - old.migrated,
            reasons={why: n for why, n in reasons.items() if n},
            bytes_moved=now.bytes_moved - old.bytes_moved,
            device_s=now.device_s - old.device_s,
            host_s=now.host_s - old.host_s,
            first_use_s=now.first_use_s - old.first_use_s,
        )

    def _begin(self) -> None:
        self._migrated = 0
        self._bytes = 0
        self._device_s = 0.0
        self._host_s = 0.0
        self._first_use_s = 0.0
        self._on_host = 0
        self._reasons: Counter[str] = Counter()

    def migrated(
        self, seconds: float, moved: int, *, host: float = 0.0, first_use: float = 0.0
    ) -> None:
        """Count a call that ran on the device, and the bytes that were moved for it.

        Args:
            seconds: What the device took, copies included.
            moved: The bytes.
            host: What the host took, such as for the original function that it was verified by.
            first_use: What was done once, such as a kernel's self-test.
        """
        with self._lock:
            self._migrated += 1
            self._device_s += seconds
            self._bytes += moved
            self._host_s += host
            self._first_use_s += first_use
        self._tell()

    def fell_back(
        self, seconds: float, reason: str, *, device: float = 0.0, first_use: float = 0.0
    ) -> None:
        """Count a call that the original function answered instead.

        Args:
            seconds: What the original function took.
            reason: Why.
            device: What the device took before, in vain.
            first_use: What was done once, such as a kernel's self-test.
        """
        with self._lock:
            self._on_host += 1
            self._host_s += seconds
            self._device_s += device
            self._first_use_s += first_use
            self._reasons[self._known(reason)] += 1
        self._tell()

    def _tell(self) -> None:
        if self.told is not None:
            self.told()

    def add(self, row: CallStats) -> None:
        """Count what another tally of the same path has counted."""
        with self._lock:
            self._migrated += row.migrated
            self._on_host += row.fell_back
            self._bytes += row.bytes_moved
            self._device_s += row.device_s
            self._host_s += row.host_s
            self._first_use_s += row.first_use_s
            for reason, count in row.reasons.items():
                self._reasons[self._known(reason)] += count

    def bounded(self, reason: str) -> str:
        """Return a reason in one short line, or that it is one of too many different ones."""
        with self._lock:
            return self._known(reason)

    def _known(self, reason: str) -> str:
        line = _in_one_line(reason)
        is_known = line in self._reasons or len(self._reasons) < MOST_REASONS
        return line if is_known else _OTHERS

    def row(self) -> CallStats:
        """Return what was counted so far."""
        with self._lock:
            return self._row()

    def taken(self) -> CallStats:
        """Return what was counted so far, and begin anew."""
        with self._lock:
            found = self._row()
            self._begin()
            return found

    def _row(self) -> CallStats:
        return CallStats(
            path=self.path,
            device=self.device,
            calls=self._migrated + self._on_host,
            migrated=self._migrated,
            reasons=dict(self._reasons.most_common()),
            bytes_moved=self._bytes,
            device_s=self._device_s,
            host_s=self._host_s,
            first_use_s=self._first_use_s,
        )


@lru_cache(MOST_REASONS)  # calls that fall back mostly do so for the same few reasons
def _in_one_line(reason: str) -> str:
    return shorten(" ".join(reason.split()), _MOST_LETTERS)


@frozen
class CallStats:
    """What became of the calls of one path.

    Attributes:
        path: The call path.
        device: Where the plan wants such calls.
        calls: How many there were.
        migrated: How many of them ran on the device.
        reasons: Why each other one did not, and how many did not for it.
        bytes_moved: What was copied to the device and back, in bytes.
        device_s: Seconds that the device took, copies included, also where it failed then; none for
            calls that were refused before.
        host_s: Seconds of work on the host: of the original functions, in the place of the device
            or to verify it, of finding out that no kernel computes a call, and of recording what a
            device computes later.
        first_use_s: Seconds of what is done once in a process, and counts neither as the device's
            nor as the host's: the import of what computes calls, the self-tests and the compilation
            of kernels.
    """

    path: str
    device: str
    calls: int
    migrated: int
    reasons: Mapping[str, int]
    bytes_moved: int
    device_s: float
    host_s: float
    first_use_s: float = 0.0

    @property
    def fell_back(self) -> int:
        """How many calls the original function answered."""
        return self.calls - self.migrated


def merge_rows(rows: Iterable[CallStats]) -> list[CallStats]:
    """Return one row for each path that was called, and device, those that took longest first."""
    tallies: dict[tuple[str, str], Tally] = {}
    for row in rows:
        tallies.setdefault((row.path, row.device), Tally(row.path, row.device)).add(row)
    found = [row for row in (tally.row() for tally in tallies.values()) if row.calls]
    return sorted(found, key=lambda row: row.device_s + row.host_s, reverse=True)


@frozen
class MigrationReport:
    """What became of the calls that a plan is for.

    Attributes:
        rows: One for each path that was called, in the order of the time that they took.
        still_held: What the program held of original functions before they were replaced, and
            calls without the migrator noticing.
        unmatched: The keys of the plan that were for no call of this process, and whether what they
            name was there: it may be written wrong.
    """

    rows: Sequence[CallStats]
    still_held: Sequence[str] = field(factory=tuple)
    unmatched: Sequence[str] = field(factory=tuple)

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON has it."""
        return asdict(self)

    def as_json(self) -> str:
        """Return it as JSON."""
        return json.dumps(self.as_dict(), indent=2)

    def __str__(self) -> str:
        table = [_TITLES, *map(_cells, self.rows)]
        widths = [max(map(len, column)) for column in zip(*table, strict=True)]
        widths = [max(pair) for pair in zip(widths, _WIDTHS, strict=True)]
        lines = [_line(_TITLES, widths)]
        for row, cells in zip(self.rows, table[1:], strict=True):
            lines.append(_line(cells, widths))
            lines += [f"    {count} x {reason}" for reason, count in row.reasons.items()]
        if not self.rows:
            lines.append("no call that the plan is for")
        lines += [f"still held: {each}" for each in self.still_held]
        lines += [f"unmatched: {each}" for each in self.unmatched]
        return "\n".join(lines)

    def as_html(self) -> str:
        """Return it as a page that needs nothing else."""
        titles = "".join(f"<th>{title}</th>" for title in (*_TITLES, "why not"))
        rows = "".join(
            f"<tr>{''.join(f'<td>{html.escape(cell)}</td>' for cell in (*_cells(row), _why(row)))}"
            "</tr>"
            for row in self.rows
        )
        rest = _listed("Still held", self.still_held) + _listed("Unmatched", self.unmatched)
        return _PAGE.format(titles=titles, rows=rows, rest=rest)


_TITLES = (
    "path",
    "device",
    "calls",
    "migrated",
    "fell back",
    "moved",
    "device",
    "host",
    "first use",
)
_WIDTHS = (44, 10, 9, 9, 9, 10, 10, 10, 10)  # at least
_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>devicecore: migrated calls</title>
<style>
body {{ font: 14px system-ui, sans-serif; margin: 2em }}
table {{ border-collapse: collapse }}
th, td {{ border-bottom: 1px solid #ccc; padding: .3em .8em; text-align: right }}
th:first-child, td:first-child, th:last-child, td:last-child {{ text-align: left }}
</style></head>
<body><h1>Migrated calls</h1>
<table><thead><tr>{titles}</tr></thead><tbody>{rows}</tbody></table>{rest}
</body></html>
"""
_MIB = 1 << 20


def _cells(row: CallStats) -> tuple[str, ...]:
    return (
        row.path,
        row.device,
        str(row.calls),
        str(row.migrated),
        str(row.fell_back),
        f"{row.bytes_moved / _MIB:.1f} MiB",
        _time(row.device_s),
        _time(row.host_s),
        _time(row.first_use_s),
    )


def _time(seconds: float) -> str:
    """Return a time of which no digits are lost where calls are short."""
    is_long = not seconds or seconds >= 0.1  # noqa: PLR2004 - three digits of it are shown
    return f"{seconds:.3f} s" if is_long else f"{seconds * 1000:.3f} ms"


def _listed(title: str, texts: Sequence[str]) -> str:
    items = "".join(f"<li>{html.escape(each)}</li>" for each in texts)
    return f"<h2>{title}</h2><ul>{items}</ul>" if items else ""


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    first, *rest = (
        cell.ljust(width) if place == 0 else cell.rjust(width)
        for place, (cell, width) in enumerate(zip(cells, widths, strict=True))
    )
    return " ".join([first, *rest])


def _why(row: CallStats) -> str:
    return "; ".join(f"{count} x {reason}" for reason, count in row.reasons.items())
