"""How devicecore reads device names: strictly, and with an error that says where and why."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from devicecore.errors import InvalidDeviceNameError
from devicecore.names.foreign_words import foreign_word
from devicecore.names.types import FIXED_TYPES, canonical_type, known_type
from devicecore.names.words import near_types, why_unknown

if TYPE_CHECKING:
    from collections.abc import Iterator

Parts = tuple[str | None, int | None, int | None, str | None, int | None]
"""Job, replica, task, device type, index."""

MAX_NUMBER = 2**31 - 1
MAX_LENGTH = 256
_MOST_DIGITS = len(str(MAX_NUMBER))
WORD = re.compile(r"[A-Za-z][A-Za-z0-9_]*")

# A key and up to two values: "/job:worker", "/device:GPU:2", "/gpu:0", "/cpu".
_PART = re.compile(r"/([A-Za-z][A-Za-z0-9_]*)(?::(\*|[A-Za-z0-9_]+)(?::(\*|[0-9]+))?)?(?=/|\Z)")
# The order in which names are printed, and so in which most are read: one match for all parts.
_CANONICAL = re.compile(
    r"(?:/job:([A-Za-z][A-Za-z0-9_]*))?(?:/replica:([0-9]{1,9}))?(?:/task:([0-9]{1,9}))?"
    r"(?:/device:([A-Za-z][A-Za-z0-9_]*):(?:\*|([0-9]{1,9})))?"
)
_LOCAL = re.compile(r"([A-Za-z][A-Za-z0-9_]*)(?::(\*|[0-9]+))?")
# How OpenVINO, TensorFlow, JAX, Paddle, CuPy, torch and people who add a description write names.
_OF_OTHERS = (
    (re.compile(r"^(\w+)\.(\d+)$"), r"\1:\2"),
    (re.compile(r"^/?(?:physical|logical)_device:"), "/device:"),
    (re.compile(r"^(?:TFRT_)?([A-Za-z]+)_(\d+)$", re.IGNORECASE), r"\1:\2"),
    (re.compile(r"^Place\((\w+(?::\d+)?)\)$"), r"\1"),
    (re.compile(r"^<?(CUDA) ?Device[ (](?:id=)?(\d+)\)?>?$", re.IGNORECASE), r"\1:\2"),
    (re.compile(r"^device\(type='(\w+)'(?:, index=(\d+))?\)$"), r"\1:\2"),
    (re.compile(r"^(\w+:\d+)[^\w:].*$"), r"\1"),
)
_KEYS = ("job", "replica", "task", "device")


def parse(text: str) -> Parts:
    """Return the parts that *text* names.

    Raises:
        InvalidDeviceNameError: It names none.
    """
    if len(text) <= MAX_LENGTH and (found := _CANONICAL.fullmatch(text)):
        job, replica, task, device_type, index = found.groups()
        return (
            job,
            None if replica is None else int(replica),
            None if task is None else int(task),
            None if device_type is None else canonical_type(device_type),
            None if index is None else int(index),
        )
    try:
        return _read(text)
    except InvalidDeviceNameError as error:
        suggestion = _suggestion(text)
        if not suggestion:
            raise
        raise InvalidDeviceNameError(text, error.position, error.reason, suggestion) from None


def number(text: str, name: str, position: int) -> int:
    """Return the number that the digits *text* write at *position* of *name*.

    Raises:
        InvalidDeviceNameError: It is beyond 2³¹-1.
    """
    # Python refuses to convert thousands of digits, so leading zeros go first.
    digits = text.lstrip("0")
    if len(digits) > _MOST_DIGITS or (value := int(digits or "0")) > MAX_NUMBER:
        raise InvalidDeviceNameError(name, position, f"a number above {MAX_NUMBER}")
    return value


def _read(text: str) -> Parts:
    if len(text) > MAX_LENGTH:
        raise InvalidDeviceNameError(text, MAX_LENGTH, f"longer than {MAX_LENGTH} characters")
    if not text.startswith("/"):
        return (None, None, None, *_local(text))
    read: dict[str, Any] = {}
    position = len(text) if text == "/" else 0
    while position < len(text):
        part = _PART.match(text, position)
        if part is None:
            raise InvalidDeviceNameError(text, position, _why_no_part(text, position))
        key, value = _value(text, part)
        if key in read:
            raise InvalidDeviceNameError(text, position, f"the {key} is given twice")
        read[key] = value
        position = part.end()
    device_type, index = read.get("device", (None, None))
    return (read.get("job"), read.get("replica"), read.get("task"), device_type, index)


def _value(text: str, part: re.Match[str]) -> tuple[str, Any]:
    """Return the key of *part* and its value; that of a device is its type and index."""
    key, first, second = part.groups()
    if key not in _KEYS:
        return "device", _legacy(text, part)
    if first is None:
        raise InvalidDeviceNameError(text, part.start(), f"{key!r} needs a value")
    if key == "device":
        device_type = None if first == "*" else canonical_type(_word(text, part, first))
        return key, (
            device_type,
            None if second in (None, "*") else number(second, text, part.start(3)),
        )
    if second is not None:
        raise InvalidDeviceNameError(text, part.start(3), f"{key!r} takes one value")
    if first == "*":
        return key, None
    return key, _word(text, part, first) if key == "job" else _count(text, part, first)


def _count(text: str, part: re.Match[str], digits: str) -> int:
    if not digits.isdigit():
        raise InvalidDeviceNameError(text, part.start(2), f"{digits!r} is not a whole number")
    return number(digits, text, part.start(2))


def _word(text: str, part: re.Match[str], word: str) -> str:
    if not word[0].isalpha():
        reason = f"{word!r} does not start with a letter"
        raise InvalidDeviceNameError(text, part.start(2), reason)
    return word


def _legacy(text: str, part: re.Match[str]) -> tuple[str, int | None]:
    """Read "/gpu:0", for the types that devicecore knows."""
    key, first, second = part.groups()
    if key.upper() not in FIXED_TYPES or second is not None:
        reason = f"{key!r} is none of {', '.join(_KEYS)} and no known type"
        raise InvalidDeviceNameError(text, part.start(1), reason)
    return key.upper(), None if first in (None, "*") else _count(text, part, first)


def _local(text: str) -> tuple[str, int | None]:
    found = _LOCAL.fullmatch(text)
    if found is None:
        raise InvalidDeviceNameError(text, 0, _why_no_local(text))
    device_type, index = found.groups()
    canonical = known_type(device_type)
    if canonical is None:
        reason = why_unknown(device_type) or f"unknown device type {device_type!r}"
        raise InvalidDeviceNameError(text, 0, reason)
    return canonical, None if index in (None, "*") else number(index, text, found.start(2))


def _why_no_part(text: str, position: int) -> str:
    if text.endswith("/"):
        return "a slash with nothing after it"
    end = text.find("/", position + 1)
    part = text[position : end if end > 0 else None]
    if any(character.isspace() for character in part):
        return f"{part!r} has a blank"
    return f"{part!r} is not a part of a name"


def _why_no_local(text: str) -> str:
    if any(character.isspace() for character in text):
        return "it has a blank"
    word = text.partition(":")[0]
    if ":" in text and (reason := foreign_word(word)) and not known_type(word):
        return reason
    return "it is neither a type with an index nor a full name that starts with a slash"


def _suggestion(text: str) -> str:
    """Return a name near *text* that can be read, or an empty string."""
    if len(text) > MAX_LENGTH:
        return ""
    for candidate in filter(_names_something, _near(text)):
        try:
            _read(candidate)
        except InvalidDeviceNameError:
            continue
        return candidate
    return ""


def _names_something(candidate: str) -> bool:
    return bool(candidate.strip("/"))


def _near(text: str) -> Iterator[str]:
    squeezed = "".join(text.split()).rstrip("/")
    yield squeezed
    for pattern, replacement in _OF_OTHERS:
        if pattern.search(text):
            yield pattern.sub(replacement, text)
    yield "/" + squeezed.lstrip("/")
    yield re.sub(r"/[A-Za-z]+:", lambda key: key[0].lower(), squeezed)
    word, _, index = squeezed.lstrip("/").partition(":")
    if digits := re.fullmatch(r"([A-Za-z]+)([0-9]+)", word):
        yield f"{digits[1]}:{digits[2]}"
    for near in near_types(word):
        yield f"{near}:{index}" if index.isdigit() else near
