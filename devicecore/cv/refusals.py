"""Describes the arguments of a refused call: names, types and flags."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import cv2
import numpy as np

from devicecore.cv.arguments import is_number
from devicecore.cv.catalog import find_row
from devicecore.cv.environment import environment
from devicecore.cv.flag_names import flag_name
from devicecore.cv.image import Image, Place

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_ARE_NUMBERS = frozenset({"colormap", "normType"})
_BORDER_VALUES = frozenset({"borderValue", "value"})
_MOST_NUMBERS = 4
_NUMBERS = (int, float, np.number)
# What is written of a value: so many letters, and lists and tuples in so many others.
LONGEST = 60
DEEPEST = 3
_ANY = ""


def why_not_an_image(name: str, value: Any) -> str:
    """Return why no kernel reads an argument that is an image, or nothing."""
    if isinstance(value, (list, tuple)):
        return next(filter(None, (why_not_an_image(name, each) for each in value)), "")
    if isinstance(value, (dict, set, frozenset)):  # planners would read it as a list
        return f"{name} is of type {_type(value)}"
    most = environment().most_channels
    reason = ""
    if not isinstance(value, Image):
        pass
    elif value.pixels == 0:
        reason = f"{name} is empty: {value.height} x {value.width} pixels"
    elif not environment().knows(value.dtype):
        reason = f"{name} is {value.dtype}, which OpenCV {cv2.__version__} does not take"
    elif value.lacks(value.dtype):
        reason = f"{name} is {value.dtype}, which this device does not have"
    elif not 1 <= value.channels <= most:
        reason = f"{name} has {value.channels} channels, and OpenCV takes 1 to {most}"
    return reason


def why_no_signature(name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> str:
    """Return why OpenCV has no function of that name for such arguments, or nothing."""
    signatures = find_row(name).signatures
    if not signatures or any(_fits(each, args, kwargs) for each in signatures):
        return ""
    given = [*map(_type, args), *(f"{key}: {_type(value)}" for key, value in kwargs.items())]
    return f"OpenCV has no {name}({', '.join(given)})"


def _fits(signature: Sequence[str], args: Sequence[Any], kwargs: Mapping[str, Any]) -> bool:
    names = [*signature[: len(args)], *kwargs]
    if len(args) > len(signature) or len({*names}) < len(names) or not {*names} <= {*signature}:
        return False
    values = zip(names, [*args, *kwargs.values()], strict=True)
    return all(
        value is None
        or (value is not ... and isinstance(value, _NUMBERS) == (name in _ARE_NUMBERS))
        for name, value in values
    )


def why_not_a_number(name: str, value: Any, kind: str) -> str:
    """Return why a parameter that is a single number has none, or nothing."""
    if is_number(value, kind):
        return ""
    return f"{name} is {format_value('', '', value)} ({_type(value)}), and not a plain {kind}"


def why_not_a_border_value(name: str, value: Any) -> str:
    """Return why an argument is no number and no tuple of up to four, or nothing.

    OpenCV looks at it also where the border is none of constant values.
    """
    if name not in _BORDER_VALUES or value is None:
        return ""
    if isinstance(value, (int, float)) or (
        isinstance(value, (tuple, list))
        and len(value) <= _MOST_NUMBERS
        and all(isinstance(each, (int, float)) for each in value)
    ):
        return ""
    own = format_value(_ANY, _ANY, value)
    return f"{name} is {own} ({_type(value)}), and neither a plain number nor up to four of them"


def names_of_positional(
    name: str, parameters: Sequence[str], args: Sequence[Any], kwargs: Mapping[str, Any]
) -> Sequence[str]:
    """Return what OpenCV calls positional arguments, of functions that it has twice too.

    Args:
        name: OpenCV's name of the function.
        parameters: The parameters of its planner, in order.
        args: Positional arguments.
        kwargs: The others.
    """
    fitting = (each for each in find_row(name).signatures if _fits(each, args, kwargs))
    return next(fitting, parameters)


def format_value(function: str, name: str, value: Any, depth: int = 0) -> str:
    """Return a value as a program would write it, briefly.

    Args:
        function: OpenCV's name of the function that is called.
        name: That of the parameter.
        value: What is given for it.
        depth: In how many lists and tuples it is.
    """
    try:
        text = _text(function, name, value, depth)
    except Exception:  # noqa: BLE001 - the caller's object may raise anything from its __repr__
        text = _type(value)
    return text if len(text) <= LONGEST else text[: LONGEST - 3] + "..."


def _text(function: str, name: str, value: Any, depth: int) -> str:
    if isinstance(value, Image):
        many = f" x {value.channels} channels" if value.has_channels else ""
        return f"{value.dtype} of {value.height} x {value.width}{many}"
    if isinstance(value, Place):
        return "an operand" if value.is_operand else "an array of the caller's"
    if isinstance(value, np.ndarray):
        return f"{value.dtype} array of {' x '.join(map(str, value.shape))}"
    if isinstance(value, (int, np.integer)) and not isinstance(value, bool):
        return flag_name(function, name, int(value)) or str(value)
    if isinstance(value, (list, tuple)):
        return _items(value, depth)
    return str(value) if isinstance(value, np.generic) else repr(value)


def _items(value: Sequence[Any], depth: int) -> str:
    """Return a list or a tuple, which may be a long one or contain itself, as far as it is read."""
    first, last = "()" if isinstance(value, tuple) else "[]"
    if depth == DEEPEST:
        return f"{first}...{last}"
    # Each of them is a letter at least.
    text = ", ".join(format_value("", "", each, depth + 1) for each in value[:LONGEST])
    comma = "," if isinstance(value, tuple) and len(value) == 1 else ""
    return first + text + comma + last


def _type(value: Any) -> str:
    own = type(value)
    return f"np.{own.__name__}" if isinstance(value, np.generic) else own.__name__
