"""Arrays of numpy in the place of those that stand for one, for callers and for callees."""

from __future__ import annotations

from operator import is_
from typing import TYPE_CHECKING, Any

from devicecore.migrate.lazy.device_array import DeviceArray, hosted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

# Objects are looked into so deep.
_MOST_DEEP = 4


def returned(result: Any, *others: Any) -> Any:
    """Return a result with arrays of numpy, whose lists, dicts and objects stay the same ones.

    Args:
        result: What a frame returned.
        others: Objects that it may have kept arrays in, such as the ``self`` of a method.
    """
    for other in others:
        _put(other, 1)
    return _put(result, _MOST_DEEP)


def _put(value: Any, depth: int) -> Any:
    if type(value) is DeviceArray:
        return value.values
    if depth == 0:
        return value
    if isinstance(value, tuple):
        members = [_put(each, depth - 1) for each in tuple.__iter__(value)]
        if all(map(is_, members, value)):
            return value
        return value._make(members) if hasattr(value, "_make") else type(value)(members)
    if type(value) is list:
        _put_into(value, enumerate(value), depth)
    elif type(value) is dict:
        _put_into(value, value.items(), depth)
    else:
        _put(getattr(value, "__dict__", None), depth - 1)
    return value


def _put_into(container: Any, members: Iterable[tuple[Any, Any]], depth: int) -> None:
    for key, each in list(members):
        if (found := _put(each, depth - 1)) is not each:
            container[key] = found


def on_arrays(
    call: Callable[[tuple[Any, ...], dict[str, Any]], Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> Any:
    """Return what a call returns that takes arrays of numpy only.

    What it returns of its arguments, as OpenCV does with ``dst=``, is what the caller gave.
    """
    given, named = hosted(args), hosted(kwargs)
    result = call(given, named)
    pairs = (*zip(args, given, strict=True), *zip(kwargs.values(), named.values(), strict=True))
    for own, array in pairs:
        if array is result and type(own) is DeviceArray:
            return own
    return result
