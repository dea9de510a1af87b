"""Says why a call is not recorded: the argument, the dtype or the flag."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from devicecore.migrate.recording.lazy_array import LazyArray
from devicecore.migrate.recording.nodes import make_source
from devicecore.migrate.recording.recording import IMAGE_AXES, MOST_CALLS, may_write

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from devicecore.migrate.plan.optimization_plan import Options
    from devicecore.migrate.recording.nodes import Primitive
    from devicecore.migrate.recording.recording import Recording


def why_not_recorded(
    recording: Recording,
    primitive: Primitive | None,
    args: Sequence[Any],
    kwargs: dict[str, Any],
    options: Options,
) -> str:
    """Return why `Recording.record` returns nothing for a call.

    Args:
        recording: The frame.
        primitive: What was called; None if no calls of it are recorded.
        args: The arguments.
        kwargs: More of them.
        options: What the plan says of such calls.
    """
    if primitive is None:
        return "samples record no call of this function, whatever its arguments are"
    if recording.is_full:
        return f"it comes after the first {MOST_CALLS} recorded calls of the sample"
    try:
        return _why_not(primitive, args, kwargs, options)
    except _RefusedArgumentError as error:
        return str(error)


class _RefusedArgumentError(TypeError):
    """An argument with which no call is recorded."""


def _why_not(
    primitive: Primitive, args: Sequence[Any], kwargs: dict[str, Any], options: Options
) -> str:
    apart = getattr(primitive, "apart", None) if "dst" in kwargs else None
    if apart is not None:
        kwargs, place = apart(kwargs)
        if place is not None and not may_write(place, [*args, *kwargs.values()]):
            msg = "dst is given, and only whole recorded images of integers are written into"
            raise _RefusedArgumentError(msg)
    given = [_checked(primitive, place, value) for place, value in enumerate(args)]
    named = {name: _checked(primitive, name, value) for name, value in kwargs.items()}
    if not _has_expr([*given, *named.values()]):
        return "none of its arguments is an image, which has two or three axes"
    own: Callable[..., str] | None = getattr(primitive, "why_not", None)
    if own is None:
        return f"{primitive.name} does not say which shape its result will have"
    return own(given, named, options)


def _checked(primitive: Primitive, place: int | str, value: Any) -> Any:
    """Return an argument with an `Expr` for each image."""
    try:
        return _with_exprs(value, primitive.takes(place))
    except TypeError:
        own = type(value)
        name = _name(primitive, place)
        msg = f"{name} is of type {own.__module__}.{own.__qualname__}, and no array of numpy"
        raise _RefusedArgumentError(msg) from None


def _with_exprs(value: Any, is_image: bool) -> Any:
    """Return an argument with an `Expr` for each image.

    Raises:
        TypeError: It is nothing that can be recorded.
    """
    own = type(value)
    if own is LazyArray and is_image and not value.is_on_host:
        return value.node.expr
    if own is LazyArray:
        value, own = value.values, np.ndarray
    if own is np.ndarray:
        return make_source(value).expr if is_image and value.ndim in IMAGE_AXES else value
    if own is tuple or own is list:
        return own([_with_exprs(each, is_image) for each in value])
    if isinstance(value, np.ndarray) or hasattr(value, "__array__"):
        raise TypeError(value)
    return value


def _has_expr(value: Any) -> bool:
    if isinstance(value, (list, tuple)):
        return any(map(_has_expr, value))
    return hasattr(value, "results")


def _name(primitive: Primitive, place: int | str) -> str:
    names = getattr(primitive, "parameters", ())
    if isinstance(place, str):
        return place
    return str(names[place]) if place < len(names) else f"argument {place + 1}"
