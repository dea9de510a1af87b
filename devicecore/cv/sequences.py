"""`rebuild_sequence`: a list or tuple of the same type with other items."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable


def rebuild_sequence(value: Any, items: Iterable[Any]) -> Any:
    """Return *items* as a tuple where *value* is one, and as a list otherwise.

    OpenCV tells these two apart, and not their subclasses, which need not be made of items at
    all: a named tuple is not.
    """
    return tuple(items) if isinstance(value, tuple) else list(items)
