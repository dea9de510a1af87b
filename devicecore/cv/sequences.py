"""Lists and tuples of a call's arguments, and of results, with something else in them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable


def alike(value: Any, items: Iterable[Any]) -> Any:
    """Return *items* as a tuple where *value* is one, and as a list otherwise.

    OpenCV tells these two apart, and not their subclasses, which need not be made of items at
    all: a named tuple is not.
    """
    return tuple(items) if isinstance(value, tuple) else list(items)
