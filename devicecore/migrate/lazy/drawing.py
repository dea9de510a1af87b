"""OpenCV's own random numbers, which nobody can put back: a frame that runs anew gets the same."""

from __future__ import annotations

from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Final

from devicecore.migrate.lazy.current import by_host, current

if TYPE_CHECKING:
    from collections import deque
    from collections.abc import Callable

AGAIN: Final[ContextVar[deque[Any] | None]] = ContextVar("drawn_before", default=None)
"""What a frame has drawn that runs anew in this thread or task."""


def drawn(original: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Fill an array with random numbers, or with those that this frame had drawn before.

    Args:
        original: ``cv2.randn``, ``randu`` or ``randShuffle``.
        args: The array, and what else it is given.
        kwargs: More of it.
    """
    before = AGAIN.get()
    place: Any = args[0] if args else kwargs.get("dst")
    if before and before[0].shape == getattr(place, "shape", None):
        place[...] = before.popleft()
        return place
    result = by_host(original, args, kwargs)
    recording = current()
    if recording is not None and hasattr(result, "copy"):
        recording.drawn.append(result.copy())
    return result
