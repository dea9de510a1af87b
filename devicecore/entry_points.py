"""Entry points of installed distributions; one with broken metadata costs only itself."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from attrs import frozen

from devicecore.optional.search_path import search_path
from devicecore.trusted_files import open_regular

if TYPE_CHECKING:
    from collections.abc import Iterator

_METADATA = (".dist-info", ".egg-info")
_MOST_BYTES = 1 << 24
_BOM = "\ufeff"  # which some editors write first


@frozen
class InstalledEntryPoint:
    """An entry point, and what its distribution says of itself.

    Attributes:
        name: Its name.
        value: ``"module:name"``, without the extras that may follow it.
        distribution: The distribution's name.
        version: Its version, or an empty string.
        requires: Its requirements.
    """

    name: str
    value: str
    distribution: str
    version: str = ""
    requires: tuple[str, ...] = ()


def entry_points(group: str) -> list[InstalledEntryPoint]:
    """Return the entry points of *group*, sorted by distribution and name.

    Most programs have no plug-in, and this finds that out without reading all metadata. Of several
    versions of a distribution the first one on ``sys.path`` counts.
    """
    found: dict[str, list[InstalledEntryPoint]] = {}
    for entry in search_path():
        for name, points in _in_entry(group, entry or "."):
            found.setdefault(_normalized(name), points)
    points = [point for points in found.values() for point in points]
    return sorted(points, key=lambda point: (point.distribution, point.name))


def _in_entry(group: str, entry: str) -> Iterator[tuple[str, list[InstalledEntryPoint]]]:
    """Yield the distributions with entry points of *group* in one entry of ``sys.path``."""
    try:
        folders = sorted(item.path for item in os.scandir(entry) if item.name.endswith(_METADATA))
    except (FileNotFoundError, ValueError):  # the latter of a text that can be no path
        return
    except OSError:
        if os.path.isfile(entry):  # noqa: PTH113 - of what may not be looked at it says no
            yield from _in_archive(group, entry)
        return
    for folder in map(Path, folders):
        text = _text(folder / "entry_points.txt")
        if group in text:
            name, points = _described(folder.name, text, group, _metadata(folder))
            if points:
                yield name, points


def _in_archive(group: str, entry: str) -> Iterator[tuple[str, list[InstalledEntryPoint]]]:
    from importlib.metadata import distributions  # late: it costs a sixth of a cold start

    for distribution in distributions(path=[entry]):
        with suppress(Exception):  # an archive's metadata may be anything, and harms only itself
            text = (distribution.read_text("entry_points.txt") or "").removeprefix(_BOM)
            metadata = distribution.read_text("METADATA") or distribution.read_text("PKG-INFO")
            if group in text:
                told = (metadata or "").removeprefix(_BOM)
                yield _described(distribution.metadata["Name"], text, group, told)


def _described(
    folder: str, text: str, group: str, metadata: str
) -> tuple[str, list[InstalledEntryPoint]]:
    from email import message_from_string  # late: it costs a tenth of a cold start

    # A folder is called "name-1.0.dist-info", and may be all there is.
    stem, _, version = folder.removesuffix(".dist-info").removesuffix(".egg-info").partition("-")
    described = message_from_string(metadata)
    name = described["Name"] or stem
    try:
        values = _section(text, group)
    except ValueError as error:
        import warnings

        warnings.warn(f"left out the plug-ins of {name}: {error}", stacklevel=2)
        values = {}
    points = [
        InstalledEntryPoint(
            key,
            value.partition("[")[0].strip(),
            name,
            described["Version"] or version.partition("-")[0],
            tuple(described.get_all("Requires-Dist") or ()),
        )
        for key, value in values.items()
    ]
    return name, points


def _section(text: str, group: str) -> dict[str, str]:
    from configparser import ConfigParser, Error

    parser = ConfigParser(delimiters=("=",), interpolation=None, strict=False)
    parser.optionxform = str  # type: ignore[assignment, method-assign]  # names keep their case
    try:
        parser.read_string(text)
    except Error as error:
        msg = f"its entry points cannot be read ({' '.join(str(error).split())})"
        raise ValueError(msg) from None
    return dict(parser[group]) if parser.has_section(group) else {}


def _metadata(folder: Path) -> str:
    text = _text(folder / "METADATA") or _text(folder / "PKG-INFO")
    required = _text(folder / "requires.txt").partition("[")[0].split("\n")
    return "".join(f"Requires-Dist: {line}\n" for line in required if line.strip()) + text


def _text(file: Path) -> str:
    """Return what *file* holds; what is no UTF-8 in it is somebody's name, and is replaced."""
    with suppress(OSError), open_regular(file) as opened:
        return opened.read(_MOST_BYTES).decode("utf-8", "replace").removeprefix(_BOM)
    return ""


def _normalized(name: str) -> str:
    return name.lower().replace("-", "_").replace(".", "_")
