"""How TensorFlow reads device names: its C++ library and its Python class, which differ.

Source: observed on TensorFlow 2.21 (``DeviceNameUtils::ParseFullName`` and ``tf.DeviceSpec``); the
rows in ``tests/data/device_names.jsonl`` are its own answers.
"""

from __future__ import annotations

import re

from devicecore.errors import InvalidDeviceNameError
from devicecore.names.grammar import MAX_NUMBER, Parts, number

_WORD = r"(\*|[A-Za-z][A-Za-z0-9_]*)"
_NUMBER = r"(\*|[0-9]+)"
_CC_PART = re.compile(
    rf"/job:{_WORD}|/replica:{_NUMBER}|/task:{_NUMBER}"
    rf"|/device:{_WORD}(?::{_NUMBER})?|/(cpu|CPU|gpu|GPU):{_NUMBER}"
)
# `tf.DeviceSpec` knows these without a slash, and in any case.
_PYTHON_TYPES = frozenset({"CPU", "GPU", "TPU", "CUSTOM", "EPU"})


def parse_cc(text: str) -> Parts:
    """Read *text* as TensorFlow's C++ library does: of a part given twice, the last one counts.

    Raises:
        InvalidDeviceNameError: TensorFlow refuses it, or a number is beyond 2³¹-1.
    """
    parts: dict[str, str | None] = {}
    position = len(text) if text == "/" else 0
    while position < len(text):
        found = _CC_PART.match(text, position)
        if found is None:
            raise InvalidDeviceNameError(text, position, "not a part that TensorFlow knows")
        job, replica, task, device_type, index, legacy, legacy_index = found.groups()
        if legacy:
            parts |= {"type": legacy.upper(), "index": legacy_index}
        elif device_type:
            parts |= {"type": device_type, "index": index}
        else:
            parts |= {
                key: value
                for key, value in (("job", job), ("replica", replica), ("task", task))
                if value
            }
        position = found.end()

    def word(key: str) -> str | None:
        value = parts.get(key)
        return None if value == "*" else value

    def integer(key: str) -> int | None:
        value = word(key)
        return None if value is None else number(value, text, 0)

    return (word("job"), integer("replica"), integer("task"), word("type"), integer("index"))


def parse_python(text: str) -> Parts:
    """Read *text* as ``tf.DeviceSpec.from_string`` does.

    Raises:
        InvalidDeviceNameError: ``tf.DeviceSpec`` refuses it, or a number is beyond 2³¹-1.
    """
    plain: dict[str, str] = {}
    device: tuple[str, str] | None = None
    position = 0
    for part in text.split("/"):
        match part.split(":"):
            case [("job" | "replica" | "task") as key, value]:
                plain[key] = value
            case [word, *rest] if word.upper() in _PYTHON_TYPES and len(rest) <= 1:
                device = _once(text, position, device, (word.upper(), rest[0] if rest else "*"))
            case ["device", device_type, index]:
                if device_type in ("cpu", "gpu"):
                    device_type = device_type.upper()
                device = _once(text, position, device, (device_type, index))
            case ["", *_]:
                pass  # DeviceSpec skips whatever follows an empty key
            case _:
                raise InvalidDeviceNameError(text, position, f"unknown attribute {part!r}")
        position += len(part) + 1
    index = device[1] if device else "*"
    return (
        plain.get("job"),
        _integer(text, plain["replica"]) if "replica" in plain else None,
        _integer(text, plain["task"]) if "task" in plain else None,
        device[0] if device else None,
        None if index == "*" else _integer(text, index),
    )


def _once(
    text: str, position: int, before: tuple[str, str] | None, device: tuple[str, str]
) -> tuple[str, str]:
    if before is not None:
        raise InvalidDeviceNameError(text, position, "the device is given twice")
    return device


def _integer(text: str, value: str) -> int:
    # int() takes signs, blanks, underscores and the digits of every script, and so does DeviceSpec.
    try:
        result = int(value)
    except ValueError:
        raise InvalidDeviceNameError(text, 0, f"{value[:20]!r} is not a whole number") from None
    if result > MAX_NUMBER:
        raise InvalidDeviceNameError(text, 0, f"a number above {MAX_NUMBER}")
    return result
