"""Protobuf's wire format: the fields of a message, found without reading what is not asked for."""

from __future__ import annotations

from contextlib import contextmanager
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import TYPE_CHECKING

from devicecore.trusted_files import open_regular

if TYPE_CHECKING:
    from collections.abc import Iterator

Bytes = bytes | mmap
Span = tuple[int, int]
"""Where a message or text begins in the bytes, and where it ends."""

_NUMBER, _EIGHT_BYTES, _SPAN, _FOUR_BYTES = 0, 1, 2, 5  # wire types
_MOST_BYTES, _SEVEN_BITS, _MORE = 10, 0x7F, 0x80


class WireFormatError(ValueError):
    """The bytes are no message."""


@contextmanager
def content_of(model: bytes | str | Path) -> Iterator[Bytes]:
    """Give the bytes of a model, of which a file's are read where they are looked at.

    Raises:
        OSError: The file cannot be read.
        ValueError: It is empty.
    """
    if isinstance(model, bytes):
        yield model
        return
    with open_regular(Path(model)) as file, mmap(file.fileno(), 0, access=ACCESS_READ) as content:
        yield content


def fields(content: Bytes, span: Span) -> Iterator[tuple[int, int | Span]]:
    """Give the number and the value of each field of the message at *span*.

    Values are whole numbers, or spans; those of four and eight bytes are left out.

    Raises:
        WireFormatError: There is no message.
    """
    place, end = span
    while place < end:
        key, place = _varint(content, place)
        kind, number = key & 7, key >> 3
        if kind == _NUMBER:
            value, place = _varint(content, place)
            yield number, value
        elif kind == _SPAN:
            size, place = _varint(content, place)
            yield number, (place, place + size)
            place += size
        elif kind in {_EIGHT_BYTES, _FOUR_BYTES}:
            place += 8 if kind == _EIGHT_BYTES else 4
        else:
            raise WireFormatError
    if place != end:
        raise WireFormatError


def spans(content: Bytes, span: Span, field: int) -> list[Span]:
    """Return where the texts or messages of *field* lie in the message at *span*."""
    return [
        value
        for number, value in fields(content, span)
        if number == field and isinstance(value, tuple)
    ]


def numbers(content: Bytes, span: Span, field: int) -> list[int]:
    """Return the whole numbers of *field* in the message at *span*."""
    return [
        value
        for number, value in fields(content, span)
        if number == field and isinstance(value, int)
    ]


def text_of(content: Bytes, span: Span, field: int) -> str:
    """Return the text of *field* in the message at *span*; an empty one if it has none."""
    found = spans(content, span, field)
    return text(content, found[-1]) if found else ""


def text(content: Bytes, span: Span) -> str:
    """Return the text at *span*.

    Raises:
        WireFormatError: There is no text.
    """
    try:
        return content[span[0] : span[1]].decode()
    except UnicodeDecodeError:
        raise WireFormatError from None


def _varint(content: Bytes, place: int) -> tuple[int, int]:
    value = 0
    for count, byte in enumerate(content[place : place + _MOST_BYTES]):
        value |= (byte & _SEVEN_BITS) << 7 * count
        if byte < _MORE:
            return value, place + count + 1
    raise WireFormatError
