"""OpenCV's random numbers: replayed when a frame or sample runs again."""

from __future__ import annotations

from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Final

from devicecore.migrate.calls.arrays import copy_arrays
from devicecore.migrate.recording.current import call_on_host, current_recording

if TYPE_CHECKING:
    from collections import deque
    from collections.abc import Callable

AGAIN: Final[ContextVar[deque[tuple[str, Any]] | None]] = ContextVar("drawn_before", default=None)
"""What a frame has drawn, and by which function, that runs anew in this thread or task."""

_LABELS: Final = 2
"""The place of the array that ``cv2.kmeans`` writes into."""


def draw(original: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Fill an array with random numbers, or with those that this frame had drawn before.

    Args:
        original: ``cv2.randn``, ``randu``, ``randShuffle`` or ``kmeans``.
        args: What it is given.
        kwargs: More of it.
    """
    before, name = AGAIN.get(), original.__name__
    if name == "kmeans":
        place: Any = args[_LABELS] if len(args) > _LABELS else kwargs.get("bestLabels")
    else:
        place = args[0] if args else kwargs.get("dst")
    if before and before[0][0] == name:
        result = before.popleft()[1]
        if name == "kmeans":
            compactness, labels, centers = copy_arrays(result)
            return compactness, _filled(place, labels), centers
        return _filled(place, copy_arrays(result))
    result = call_on_host(original, args, kwargs)
    recording = current_recording()
    if recording is not None:
        recording.drawn.append((name, copy_arrays(result)))
    return result


def seed(original: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Seed OpenCV's random numbers: those after that are the same ones without our doing."""
    before = AGAIN.get()
    result = original(*args, **kwargs)
    if before:
        before.clear()
    return result


def _filled(place: Any, values: Any) -> Any:
    """Return an array of the program, which gets some values if it can have them."""
    if getattr(place, "shape", None) != values.shape or place.dtype != values.dtype:
        return values
    place[...] = values
    return place
