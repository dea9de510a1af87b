"""Why there is no kernel for a call: which argument, type or flag it is about."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import cv2
import numpy as np

from devicecore.cv.arguments import is_number
from devicecore.cv.environment import environment
from devicecore.cv.image import Image, Place

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

# What OpenCV's names of a parameter's values begin with.
_FLAGS: Mapping[str, str] = {
    "interpolation": "INTER_",
    "borderType": "BORDER_",
    "borderMode": "BORDER_",
    "code": "COLOR_",
    "normType": "NORM_",
    "norm_type": "NORM_",
    "cmpop": "CMP_",
    "op": "MORPH_",
    "method": "TM_",
    "adaptiveMethod": "ADAPTIVE_THRESH_",
    "thresholdType": "THRESH_",
    "type": "THRESH_",
    "rtype": "REDUCE_",
    "rotateCode": "ROTATE_",
    "colormap": "COLORMAP_",
}
# Of functions that OpenCV has twice, where one planner is for both: the parameters of each.
_SIGNATURES: Mapping[str, tuple[tuple[str, ...], ...]] = {
    "applyColorMap": (("src", "colormap", "dst"), ("src", "userColor", "dst")),
    "norm": (("src1", "normType", "mask"), ("src1", "src2", "normType", "mask")),
}
_ARE_NUMBERS = frozenset({"colormap", "normType"})
_DEPTHS = frozenset({"ddepth", "dtype", "sdepth"})
# Values of examples that are tried in the place of one that is refused.
_MOST_TRIED = 24
_LONGEST = 60
_TYPES = ("uint8", "float32", "uint16", "int16", "float64")
_CHANNELS = (3, 1, 2, 4)


def why_not_an_image(name: str, value: Any) -> str:
    """Return why no kernel reads an argument that is an image, or nothing."""
    if isinstance(value, (list, tuple)):
        return next(filter(None, (why_not_an_image(name, each) for each in value)), "")
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
    signatures = _SIGNATURES.get(name, ())
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
        value is None or isinstance(value, (int, float, np.number)) == (name in _ARE_NUMBERS)
        for name, value in values
    )


def why_not_a_number(name: str, value: Any, kind: str) -> str:
    """Return why a parameter that is a single number has none, or nothing."""
    if is_number(value, kind):
        return ""
    return f"{name} is {_written(name, value)} ({_type(value)}), and not a plain {kind}"


def why_refused(
    arguments: Mapping[str, Any],
    is_refused: Callable[[Mapping[str, Any]], bool],
    examples: Iterable[Mapping[str, Any]],
) -> str:
    """Return which arguments a planner refuses; all of them, if it would take none of its calls.

    Args:
        arguments: The call's, by their names.
        is_refused: Asks the planner.
        examples: Arguments of calls that there are kernels for.
    """
    found = decisive(arguments, is_refused, examples)
    if not found:
        found = [f"{name}={_written(name, value)}" for name, value in arguments.items()]
    return "no kernel for " + ", ".join(found)


def decisive(
    arguments: Mapping[str, Any],
    is_refused: Callable[[Mapping[str, Any]], bool],
    examples: Iterable[Mapping[str, Any]],
) -> list[str]:
    """Return the arguments with which a call would not be refused if one of them were another.

    Args:
        arguments: The call's, by their names.
        is_refused: Says whether a call with others would be.
        examples: Arguments of calls that there are kernels for.
    """
    known = list(examples)
    found = []
    for name in arguments:
        tried = _others(name, arguments[name], known)
        if any(not is_refused(each) for each in _changed(arguments, name, tried)):
            found.append(f"{name}={_written(name, arguments[name])}")
    return found


def _changed(
    arguments: Mapping[str, Any], name: str, values: Iterable[Any]
) -> Iterator[dict[str, Any]]:
    yield {key: value for key, value in arguments.items() if key != name}
    for value in values:
        yield {**arguments, name: value}


def _others(name: str, value: Any, examples: list[Mapping[str, Any]]) -> Iterator[Any]:
    """Yield other values of an argument, the nearest ones first."""
    if isinstance(value, Image):
        size = value.height, value.width
        for dtype in (value.dtype, *_TYPES):
            for channels in (value.channels, *_CHANNELS):
                yield Image(*size, channels, dtype, has_channels=channels > 1)
    seen: list[Any] = []
    for example in examples:
        other = example.get(name)
        if name in example and not any(other is each for each in seen):
            seen.append(other)
            yield other
        if len(seen) == _MOST_TRIED:
            return


def _type(value: Any) -> str:
    own = type(value)
    return f"np.{own.__name__}" if isinstance(value, np.generic) else own.__name__


def _written(name: str, value: Any) -> str:
    """Return a value as a program would write it, briefly."""
    if isinstance(value, Image):
        many = f" x {value.channels} channels" if value.has_channels else ""
        return f"{value.dtype} of {value.height} x {value.width}{many}"
    if isinstance(value, Place):
        return "an operand" if value.is_operand else "an array of the caller's"
    if isinstance(value, np.ndarray):
        return f"{value.dtype} array of {' x '.join(map(str, value.shape))}"
    if type(value) is int and (flag := _flag(name, value)):
        return flag
    if isinstance(value, (list, tuple)):
        text = ", ".join(_written("", each) for each in value)
        return text[:_LONGEST] if len(text) <= _LONGEST else text[: _LONGEST - 3] + "..."
    text = str(value) if isinstance(value, np.generic) else repr(value)
    return text if len(text) <= _LONGEST else text[: _LONGEST - 3] + "..."


@cache
def _flag(name: str, value: int) -> str:
    if name in _DEPTHS:
        for kind in ("8U", "8S", "16U", "16S", "32S", "32F", "64F", "16F"):
            if getattr(cv2, f"CV_{kind}", None) == value:
                return f"CV_{kind}"
        return ""
    prefix = _FLAGS.get(name)
    names = [each for each in dir(cv2) if prefix and each.startswith(prefix)]
    return next((each for each in names if getattr(cv2, each) == value), "")
