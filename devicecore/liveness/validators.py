"""Validators of attrs whose errors are one sentence; those of attrs print their own innards."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from attrs import Attribute

    Validator = Callable[[object, Attribute[Any], Any], None]

_WORDS = {str: "a text", int: "a whole number"}


def is_a(kind: type, *, or_none: bool = False, least: int | None = None) -> Validator:
    """Return a validator that takes values of *kind*, a text or a whole number.

    Args:
        kind: ``str`` or ``int``; a truth value is no number.
        or_none: Whether None is taken as well.
        least: The least number.
    """

    def validate(_: object, attribute: Attribute[Any], value: Any) -> None:
        if not (or_none and value is None):
            check(attribute.name, value, kind, least=least, or_none=or_none)

    return validate


def check(
    name: str, value: object, kind: type, *, least: int | None = None, or_none: bool = False
) -> None:
    """Look whether *value* is of *kind*, ``str`` or ``int``.

    Raises:
        TypeError: It is not.
        ValueError: It is a number below *least*.
    """
    is_kind = isinstance(value, kind) and not (kind is int and isinstance(value, bool))
    if is_kind and (least is None or value >= least):  # type: ignore[operator]  # an int here
        return
    wanted = _WORDS[kind] + ("" if least is None else f" from {least}")
    msg = f"{name} is {value!r}; it is {wanted}{', or None' if or_none else ''}"
    raise ValueError(msg) if is_kind else TypeError(msg)


def check_mapping(name: str, value: object, example: str) -> None:
    """Look whether *value* is a mapping with texts for keys.

    Raises:
        TypeError: It is not.
    """
    if not isinstance(value, Mapping):
        msg = f"{name} is {value!r}; it is a mapping such as {example}"
        raise TypeError(msg)
    for key in value:
        if not isinstance(key, str):
            msg = f"{name} has the key {key!r}; keys are texts, as in {example}"
            raise TypeError(msg)
