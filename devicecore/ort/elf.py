"""What a shared library of Linux needs, read from its file without loading it."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, BinaryIO

from attrs import frozen

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_MAGIC = b"\x7fELF"
_CLASS_64 = 2
_LITTLE_ENDIAN = 1
_PT_LOAD, _PT_DYNAMIC = 1, 2
_DT_NULL, _DT_NEEDED, _DT_STRTAB, _DT_RPATH, _DT_RUNPATH = 0, 1, 5, 15, 29
_PROGRAM_HEADER = struct.Struct("<IIQQQQQQ")
_DYNAMIC_ENTRY = struct.Struct("<qQ")


@frozen
class ElfNeeds:
    """The libraries that one library names, and the folders of its own that it looks in.

    Attributes:
        libraries: Their names, such as ``"libcublas.so.13"``, in the file's order.
        folders: Its DT_RUNPATH, with ``$ORIGIN`` still in it.
        inherited_folders: Its DT_RPATH, which the libraries that it loads look in as well, and
            theirs; the loader ignores it beside a DT_RUNPATH.
    """

    libraries: tuple[str, ...] = ()
    folders: tuple[str, ...] = ()
    inherited_folders: tuple[str, ...] = ()


def needs_of(path: Path) -> ElfNeeds:
    """Return what the library at *path* needs; nothing for a file that is not 64-bit ELF.

    Raises:
        OSError: The file cannot be read.
    """
    with path.open("rb") as file:
        header = file.read(64)
        if not _is_supported(header):
            return ElfNeeds()
        try:
            return _read(file, header)
        except (struct.error, LookupError, ValueError, OverflowError):  # cut short or damaged
            return ElfNeeds()


def _is_supported(header: bytes) -> bool:
    return (
        header[:4] == _MAGIC
        and len(header) == 64  # noqa: PLR2004 - the size of the header of 64-bit ELF
        and header[4] == _CLASS_64
        and header[5] == _LITTLE_ENDIAN
    )


def _read(file: BinaryIO, header: bytes) -> ElfNeeds:
    segments = list(_segments(file, header))
    dynamic = [(offset, size) for kind, offset, _, size in segments if kind == _PT_DYNAMIC]
    if not dynamic:
        return ElfNeeds()
    offset, size = dynamic[0]
    file.seek(offset)
    entries = []
    for tag, value in _DYNAMIC_ENTRY.iter_unpack(file.read(size)):
        if tag == _DT_NULL:
            break
        entries.append((tag, value))
    strings = _file_offset(segments, dict(entries)[_DT_STRTAB])

    def texts(wanted: int) -> list[str]:
        return [_string(file, strings + value) for tag, value in entries if tag == wanted]

    def folders(tag: int) -> tuple[str, ...]:
        return tuple(part for text in texts(tag) for part in text.split(":") if part)

    own = folders(_DT_RUNPATH)
    return ElfNeeds(tuple(texts(_DT_NEEDED)), own, () if own else folders(_DT_RPATH))


def _segments(file: BinaryIO, header: bytes) -> Iterator[tuple[int, int, int, int]]:
    """Yield kind, offset in the file, address and size of each segment."""
    (table,) = struct.unpack_from("<Q", header, 32)
    size, count = struct.unpack_from("<HH", header, 54)
    for index in range(count):
        file.seek(table + index * size)
        kind, _, offset, address, _, in_file, _, _ = _PROGRAM_HEADER.unpack(
            file.read(_PROGRAM_HEADER.size)
        )
        yield kind, offset, address, in_file


def _file_offset(segments: list[tuple[int, int, int, int]], address: int) -> int:
    """Return where in the file lies what is loaded at *address*."""
    for kind, offset, start, size in segments:
        if kind == _PT_LOAD and start <= address < start + size:
            return address - start + offset
    raise IndexError(address)


def _string(file: BinaryIO, offset: int) -> str:
    file.seek(offset)
    text = b""
    while b"\0" not in text:
        if not (chunk := file.read(64)):
            raise IndexError(offset)
        text += chunk
    return text[: text.index(b"\0")].decode()
