"""Keys of a plan: patterns of call paths."""

from __future__ import annotations

from collections import defaultdict
from functools import cache
from itertools import pairwise
from math import inf
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar
from unicodedata import normalize

from attrs import frozen

from devicecore.errors import PlanError, shorten
from devicecore.migrate.plan.package_aliases import find_package

if TYPE_CHECKING:
    from collections.abc import Iterable

Segments = tuple[str, ...]
"""One function is one segment (``cv2:resize``), a method two (``module:Class``, ``method``)."""

Path = tuple[Segments, ...]
"""The frames around a call, outermost first, and the call itself last."""

ANY = "*"
ANY_NUMBER = "**"
WILDCARDS = (ANY, ANY_NUMBER)
MOST_SEGMENTS = 64


@frozen
class Key:
    """A pattern of segments: it matches a path that it equals, or whose last segments it equals.

    ``*`` stands for any one segment, ``**`` for any number of them, also none. A method is two
    segments, so that ``*/*`` stands for any method. A last segment ``module.*`` stands for the
    functions of a module that have a strategy: one key for each of those.

    Attributes:
        pattern: The segments, outermost first.
        module: The module whose functions the last segment stands for; empty where it names one.

    Examples:
        >>> key = Key.parse("Dataset/__getitem__/**/cv2:resize")
        >>> key.matches(("Dataset", "__getitem__", "preprocess", "cv2:resize"))
        True
        >>> key.length
        3
    """

    pattern: Segments
    module: str = ""

    def __str__(self) -> str:
        return "/".join(self.pattern)

    @staticmethod
    def parse(text: str) -> Key:
        """Return the key that *text* writes, its names normalized as Python's own are.

        Raises:
            PlanError: *text* is no key; says why.
        """
        # Python normalizes the names of a program, and so does a text that shall find them.
        pattern = tuple(normalize("NFKC", segment) for segment in text.split("/"))
        reason, fix = _fault(pattern)
        if reason:
            raise PlanError(text, reason, fix)
        return Key(pattern, _module_of(pattern[-1]))

    @property
    def length(self) -> int:
        """How many segments it asks for, all but each ``**``. Of several keys the longest wins."""
        return len(self.pattern) - self.pattern.count(ANY_NUMBER)

    @property
    def rank(self) -> tuple[int, float]:
        """The greatest of several keys wins, of the longest ones that of a function itself.

        After it comes that of the nearest module.
        """
        return self.length, self.module.count(".") if self.module else inf

    @property
    def is_literal(self) -> bool:
        """Whether it has no wildcard."""
        return not any(segment in WILDCARDS for segment in self.pattern)

    def matches(self, path: Segments) -> bool:
        """Return whether *path*, in segments, is one of those that this key is for."""
        pattern = self.pattern
        if self.is_literal:
            return path[-len(pattern) :] == pattern
        # Positions in the pattern that can be reached by what was read so far; as the path may
        # begin anywhere before the key, the first one always can.
        reached = self._with_skips({0})
        for segment in path:
            stepped = {
                at if pattern[at] == ANY_NUMBER else at + 1
                for at in reached
                if at < len(pattern) and pattern[at] in {segment, ANY, ANY_NUMBER}
            }
            reached = self._with_skips(stepped | {0})
        return len(pattern) in reached

    def _with_skips(self, positions: set[int]) -> set[int]:
        """Return *positions* and those after each ``**`` that may stand for nothing."""
        for at, segment in enumerate(self.pattern):
            if segment == ANY_NUMBER and at in positions:
                positions.add(at + 1)
        return positions


def _fault(pattern: Segments) -> tuple[str, str]:
    """Return why a pattern is none and what would be one; two empty texts where it is one."""
    if pattern == ("",):
        return "a key is empty", "a key is one or more segments with / between them"
    if len(pattern) > MOST_SEGMENTS:
        reason = f"a key of {len(pattern)} segments; at most {MOST_SEGMENTS} are possible"
        return reason, "name the innermost frames only: a key matches any path that ends with it"
    for segment in (*pattern[:-1], _module_of(pattern[-1]) or pattern[-1]):
        faults = _fault_of_segment(segment)
        if faults[0]:
            return faults
    if all(segment in WILDCARDS for segment in pattern):
        return "it names no function", "wildcards stand beside names of functions to migrate"
    if (ANY_NUMBER, ANY_NUMBER) in pairwise(pattern):
        return "it has ** twice in a row", "one ** says the same"
    return "", ""


def _fault_of_segment(segment: str) -> tuple[str, str]:
    shown = repr(shorten(segment, 80))
    if segment in WILDCARDS:
        return "", ""
    if not segment:
        return "it has an empty segment", "remove the / that has nothing beside it"
    if "*" in segment:
        fix = "* and ** stand for whole segments, and module.* at the end for its functions"
        return f"{shown} is {'no frame' if _module_of(segment) else 'partly a wildcard'}", fix
    if "<locals>" in segment:
        reason = f"{shown} lives inside another function, where nothing can be patched"
        return reason, "name the function around it"
    if all(name.isidentifier() for name in segment.replace(":", ".", 1).split(".")):
        return "", ""
    return f"{shown} names nothing in Python", _instead_of(segment)


def _instead_of(segment: str) -> str:
    module = segment.rstrip(".:")
    if module == segment or not all(name.isidentifier() for name in module.split(".")):
        return "a segment is a name, a dotted name, module:qualname, * or **"
    module = find_package(module) or module
    return f"{module}.* stands for the functions of a module, {module}.name for one"


def _module_of(segment: str) -> str:
    """Return the module whose functions a segment stands for, as in ``cv2.*``; else nothing."""
    module = segment[:-2] if segment[-2:] in {".*", ":*"} else ""
    return module if "*" not in module else ""


def common_path(left: Key, right: Key) -> Segments | None:
    """Return a path that both keys match, or None where there is none.

    A segment that may be anything is written as ``*``.
    """
    first, second = (ANY_NUMBER, *left.pattern), (ANY_NUMBER, *right.pattern)

    @cache
    def meet(at: int, other: int) -> Segments | None:
        """Return what ``first[at:]`` and ``second[other:]`` both stand for, if anything."""
        own, rival = first[at : at + 1], second[other : other + 1]
        if not own and not rival:
            return ()
        if ANY_NUMBER in own + rival:
            # It stands for nothing, or for what comes next on the other side and maybe more.
            mine, theirs = (1, 0) if own == (ANY_NUMBER,) else (0, 1)
            taken = rival if mine else own
            without = meet(at + mine, other + theirs)
            if without is not None or not taken:
                return without
            return _before(taken[0], meet(at + theirs, other + mine))
        if own and rival and (own == rival or ANY in own + rival):
            named = rival if own == (ANY,) else own
            return _before(named[0], meet(at + 1, other + 1))
        return None

    return meet(0, 0)


def _before(segment: str, rest: Segments | None) -> Segments | None:
    if rest is None or segment == ANY_NUMBER:
        return rest
    return (segment, *rest)


def conflicts(left: Key, right: Key) -> bool:
    """Return whether two keys have equal rank and can match the same path: neither would win."""
    return _tied_path(left, right) is not None


def _tied_path(left: Key, right: Key) -> Segments | None:
    if left.length != right.length:
        return None
    last, other = left.pattern[-1], right.pattern[-1]
    # Most keys: no need to look further.
    if (last != other or left.rank != right.rank) and not {last, other} & set(WILDCARDS):
        return None
    return common_path(left, right)


class Keyed(Protocol):
    """What has a key."""

    @property
    def key(self) -> Key:
        """The calls that it is for."""
        ...


Entry = TypeVar("Entry", bound=Keyed)


def first_tie(entries: Iterable[Entry]) -> tuple[Entry, Entry, Segments] | None:
    """Return the first two of *entries* whose keys conflict, with a path that both match."""
    # Keys without wildcards are only tied with themselves, so that a long plan is quickly judged.
    literal: dict[tuple[Segments, tuple[int, float]], Entry] = {}
    literals: defaultdict[int, list[Entry]] = defaultdict(list)
    wild: defaultdict[int, list[Entry]] = defaultdict(list)
    for entry in entries:
        key = entry.key
        rivals = wild[key.length]
        if key.is_literal:
            same = key.pattern, key.rank
            if same in literal:
                return literal[same], entry, key.pattern
            literal[same] = entry
        else:
            rivals = rivals + literals[key.length]
        for rival in rivals:
            path = _tied_path(rival.key, key)
            if path is not None:
                return rival, entry, path
        (literals if key.is_literal else wild)[key.length].append(entry)
    return None


class Keys(Generic[Entry]):
    """Entries by their keys, no two of which conflict; never changes.

    Args:
        entries: What to find.
    """

    def __init__(self, entries: Iterable[Entry]) -> None:
        by_last: defaultdict[str, list[Entry]] = defaultdict(list)
        for entry in sorted(entries, key=lambda entry: entry.key.rank, reverse=True):
            last = entry.key.pattern[-1]
            by_last[ANY if last in WILDCARDS else last].append(entry)
        self._by_last = dict(by_last)

    def find(self, path: Path) -> Entry | None:
        """Return the entry for a call.

        That is the one with the longest key that matches the whole path; where none does, the one
        for the nearest frame around the call, since a key for a frame covers what runs inside it.

        Args:
            path: The frames around the call and the call itself, which is last.
        """
        for depth in range(len(path), 0, -1):
            found = self._longest(tuple(segment for frame in path[:depth] for segment in frame))
            if found is not None:
                return found
        return None

    def _longest(self, path: Segments) -> Entry | None:
        groups = (self._by_last.get(path[-1], ()), self._by_last.get(ANY, ()))
        matching = (
            next((entry for entry in group if entry.key.matches(path)), None) for group in groups
        )
        return max(
            (entry for entry in matching if entry is not None),
            key=lambda entry: entry.key.rank,
            default=None,
        )
