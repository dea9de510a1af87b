"""Options of a session that are attributes of ONNX Runtime's ``SessionOptions``, no entries."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

SEVERITY = "log_severity_level"
_TRUE, _FALSE = frozenset({"1", "true"}), frozenset({"0", "false"})
_SEVERITIES = {"verbose": 0, "info": 1, "warning": 2, "error": 3, "fatal": 4}
# By the name in ONNX Runtime, without what is the same in all of them, and by its number.
_LEVELS = {
    "disable": "ORT_DISABLE_ALL",
    "basic": "ORT_ENABLE_BASIC",
    "extended": "ORT_ENABLE_EXTENDED",
    "layout": "ORT_ENABLE_LAYOUT",
    "all": "ORT_ENABLE_ALL",
}
_NUMBERS = {"0": "disable", "1": "basic", "2": "extended", "3": "layout", "99": "all"}


def check_attribute(name: str, text: str) -> None:
    """Look whether *text* is a value of the attribute *name*, one of `SESSION_ATTRIBUTES`.

    Raises:
        ValueError: It is none.
    """
    SESSION_ATTRIBUTES[name](name, text)


def set_attributes(ort: Any, options: Any, entries: Mapping[str, str]) -> dict[str, str]:
    """Set those of *entries* that are attributes of *options*, and return the others.

    Raises:
        ValueError: One has a value that is none.
    """
    for name in SESSION_ATTRIBUTES.keys() & entries.keys():
        value = SESSION_ATTRIBUTES[name](name, entries[name])
        if name == "graph_optimization_level":
            value = getattr(ort.GraphOptimizationLevel, value)
        setattr(options, name, value)
    return {name: text for name, text in entries.items() if name not in SESSION_ATTRIBUTES}


def severity_of(entries: Mapping[str, str]) -> int | None:
    """Return from which severity on the program wants to see messages; None if it said nothing."""
    return _severity(SEVERITY, entries[SEVERITY]) if SEVERITY in entries else None


def _severity(name: str, text: str) -> int:
    value = _SEVERITIES.get(text.lower(), text)
    if str(value) in map(str, _SEVERITIES.values()):
        return int(value)
    raise _not_one_of(name, text, [f"{number} ({word})" for word, number in _SEVERITIES.items()])


def _level(name: str, text: str) -> str:
    word = text.rpartition(".")[2].upper()
    for short, full in _LEVELS.items():
        if word in {short.upper(), full} or _NUMBERS.get(word) == short:
            return full
    raise _not_one_of(name, text, [repr(short) for short in _LEVELS])


def _truth(name: str, text: str) -> bool:
    if text.lower() in _TRUE | _FALSE:
        return text.lower() in _TRUE
    raise _not_one_of(name, text, ["True", "False"])


def _count(name: str, text: str) -> int:
    if text.isascii() and text.isdigit():
        return int(text)
    raise _not_one_of(name, text, ["a whole number from 0"])


def _not_one_of(name: str, text: str, possible: list[str]) -> ValueError:
    return ValueError(f"{name} is {text!r}; it can be {', '.join(possible)}")


SESSION_ATTRIBUTES: Mapping[str, Callable[[str, str], Any]] = {
    SEVERITY: _severity,
    "log_verbosity_level": _count,
    "graph_optimization_level": _level,
    "enable_cpu_mem_arena": _truth,
    "enable_mem_pattern": _truth,
    "enable_mem_reuse": _truth,
    "inter_op_num_threads": _count,
    "intra_op_num_threads": _count,
    "use_deterministic_compute": _truth,
}
"""What can be set, with the function that reads its text."""
