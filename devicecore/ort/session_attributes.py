"""Options of a session that ONNX Runtime's ``SessionOptions`` has as attributes, no entries.

Those of today stand in a table, so that a value is checked without ONNX Runtime. What a later
version adds is read from its class, and checked by the type of its default.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    Reader = Callable[[str, object], Any]

SEVERITY = "log_severity_level"
OPTIMISED_FILE = "optimized_model_filepath"
_TRUE, _FALSE = frozenset({"1", "true"}), frozenset({"0", "false"})
_SEVERITIES = {"verbose": 0, "info": 1, "warning": 2, "error": 3, "fatal": 4}
# Numbers by the names in ONNX Runtime, without what is the same in all of them.
_LEVELS = {"disable": 0, "basic": 1, "extended": 2, "layout": 3, "all": 99}
_MODES = {"sequential": 0, "parallel": 1}
_ORDERS = {"default": 0, "priority_based": 1, "memory_efficient": 2}
_CLASS = re.compile(r"^[A-Za-z]+\.")
_LARGEST = 2**31 - 1
_BY_NAME, _BY_DENOTATION = (f"free_dimension_override_by_{what}" for what in ("name", "denotation"))
# As ONNX Runtime calls it in Python and in JavaScript.
_SPELLINGS = {
    spelling: name
    for name in (_BY_NAME, _BY_DENOTATION)
    for spelling in (name, f"add_{name}", name.replace("override", "overrides"))
} | {"free_dimension_overrides": _BY_NAME}
_ENTRIES = "add_session_config_entry"
FREE_DIMENSIONS = (_BY_NAME, _BY_DENOTATION)


def flattened(name: str, value: object) -> dict[str, object]:
    """Return the options that the option *name* stands for: itself, or those in its mapping.

    A mapping of free dimensions becomes an option for each of them, and one of entries the entries.

    Raises:
        TypeError: The value has to be a mapping and is none.
    """
    prefix = f"{_SPELLINGS[name]}." if name in _SPELLINGS else ""
    if not prefix and name != _ENTRIES:
        return {name: value}
    if isinstance(value, Mapping) and all(isinstance(key, str) for key in value):
        return {f"{prefix}{key}": each for key, each in value.items()}
    example = "{'batch': 1}" if prefix else "{'session.disable_prepacking': '1'}"
    msg = f"{name} is {value!r}; it is a mapping such as {example}"
    raise TypeError(msg)


def is_free_dimension(name: str) -> bool:
    """Return whether the option *name* is the size of a free dimension."""
    return name.startswith(tuple(f"{kind}." for kind in FREE_DIMENSIONS))


def check_attribute(name: str, value: object) -> None:
    """Look whether *value* is one of the attribute *name*; anything is of what is none today.

    Raises:
        ValueError: It is none.
    """
    if is_free_dimension(name):
        _size(name, value)
    elif name in SESSION_ATTRIBUTES:
        SESSION_ATTRIBUTES[name](name, value)


def attributes_of(options: Any) -> dict[str, Reader]:
    """Return the attributes that *options*, ONNX Runtime's ``SessionOptions``, really has."""
    kind = type(options)
    names = [name for name in dir(kind) if isinstance(getattr(kind, name), property)]
    return {
        name: SESSION_ATTRIBUTES.get(name) or _reader_like(getattr(options, name)) for name in names
    }


def set_attributes(options: Any, entries: Mapping[str, str]) -> dict[str, str]:
    """Set those of *entries* that are attributes of *options*, and return the others.

    Raises:
        ValueError: One has a value that is none.
    """
    readers, others = attributes_of(options), {}
    for name, text in entries.items():
        if is_free_dimension(name):
            kind, _, dimension = name.partition(".")
            getattr(options, f"add_{kind}")(dimension, _size(name, text))
        elif name in readers:
            value = readers[name](name, text)
            of = type(getattr(options, name))
            # A member of an enumeration is not made of a plain number by itself.
            setattr(options, name, of(value) if hasattr(of, "__members__") else value)
        else:
            others[name] = text
    return others


def severity_of(entries: Mapping[str, str]) -> int | None:
    """Return from which severity on the program wants to see messages; None if it said nothing."""
    return _severity(SEVERITY, entries[SEVERITY]) if SEVERITY in entries else None


def _severity(name: str, value: object) -> int:
    number = _SEVERITIES.get(str(value).lower(), value)
    if str(number) in map(str, _SEVERITIES.values()):
        return int(str(number))
    raise _not_one_of(name, value, [f"{number} ({word})" for word, number in _SEVERITIES.items()])


def _one_of(numbers: Mapping[str, int]) -> Reader:
    """Return the reader of an enumeration: of a member, its number, or its name in short too."""

    def read(name: str, value: object) -> int:
        word = _short(_CLASS.sub("", str(value)))
        for known, number in numbers.items():
            if word in {known, str(number)}:
                return number
        raise _not_one_of(name, value, list(map(repr, numbers)))

    return read


def _short(member: str) -> str:
    """Return the name of a *member* without what is the same in all of its enumeration."""
    word = member.lower().removeprefix("ort_").removeprefix("enable_")
    return word.removesuffix("_all")


def _truth(name: str, value: object) -> bool:
    word = str(value).lower()
    if word in _TRUE | _FALSE:
        return word in _TRUE
    raise _not_one_of(name, value, ["True", "False"])


def _count(name: str, value: object, least: int = 0) -> int:
    text = str(value)
    is_whole = text.isascii() and text.isdigit() and len(text) <= len(str(_LARGEST))
    if is_whole and least <= int(text) <= _LARGEST:
        return int(text)
    raise _not_one_of(name, value, [f"a whole number from {least}"])


def _size(name: str, value: object) -> int:
    return _count(name, value, 1)


def _text(name: str, value: object) -> str:
    if isinstance(value, str | os.PathLike) and isinstance(text := os.fspath(value), str):
        return text
    raise _not_one_of(name, value, ["a text"])


def _reader_like(default: object) -> Reader:
    """Return the reader of values like *default*."""
    if members := getattr(type(default), "__members__", None):
        return _one_of({_short(word): int(member) for word, member in members.items()})
    if isinstance(default, bool):
        return _truth
    return _count if isinstance(default, int) else _text


def _not_one_of(name: str, value: object, possible: list[str]) -> ValueError:
    return ValueError(f"{name} is {value!r}; it can be {', '.join(possible)}")


SESSION_ATTRIBUTES: Mapping[str, Reader] = {
    SEVERITY: _severity,
    "log_verbosity_level": _count,
    "logid": _text,
    "graph_optimization_level": _one_of(_LEVELS),
    "execution_mode": _one_of(_MODES),
    "execution_order": _one_of(_ORDERS),
    "enable_cpu_mem_arena": _truth,
    "enable_mem_pattern": _truth,
    "enable_mem_reuse": _truth,
    "enable_profiling": _truth,
    "inter_op_num_threads": _count,
    "intra_op_num_threads": _count,
    OPTIMISED_FILE: _text,
    "profile_file_prefix": _text,
    "use_deterministic_compute": _truth,
    "use_per_session_threads": _truth,
}
"""What ONNX Runtime has today, with the function that reads its value, or its text."""
