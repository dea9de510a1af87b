"""Logs which kernel `cv` takes for a call, and why no better one, for ``devicecore`` at DEBUG.

It is said once for all calls that are alike: those that differ in sizes and numbers only.
"""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING, Any

from devicecore.cv.image import BATCH_AXES, image_of
from devicecore.cv.reasons import likeness
from devicecore.cv.refusals import DEEPEST, LONGEST, format_value
from devicecore.cv.sequences import rebuild_sequence
from devicecore.debug_log import debug, listed

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

# A program has few kinds of calls; one with more is told of some of them again.
_MOST_SAID = 1024
_IMAGE_AXES = (2, 3, BATCH_AXES)

is_wanted: Callable[[], bool] = partial(logging.getLogger("devicecore").isEnabledFor, logging.DEBUG)
"""Return whether anybody reads it; asked for every call, so it has to be quick."""

_said: set[Any] = set()


def say(name: str, device: str, what: str, refused: Mapping[str, str]) -> None:
    """Say what was chosen for the calls of a function that takes no flags of OpenCV's.

    Args:
        name: Of the function.
        device: Where the calls were to be computed.
        what: Who computes them.
        refused: Why others do not.
    """
    if _is_new((name, device, what, *refused.items())):
        debug("%s on %s: %s; passed over: %s", name, device, what, listed(dict(refused)))


def say_choice(
    name: str,
    device: str,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    what: str,
    refused: Mapping[str, str],
) -> None:
    """Say what was chosen for a call.

    Args:
        name: OpenCV's name of the function.
        device: Where the call was to be computed.
        args: Its arguments.
        kwargs: More of them.
        what: Who computes it.
        refused: Why others do not, by their labels.
    """
    positional = [*map(_described, args)]
    named = {key: _described(value) for key, value in kwargs.items()}
    likenesses = [(key, likeness(value)) for key, value in named.items()]
    if not _is_new((name, device, what, *refused, *map(likeness, positional), *likenesses)):
        return
    given = [format_value(name, "", value) for value in positional]
    given += [f"{key}={format_value(name, key, value)}" for key, value in named.items()]
    others = listed(dict(refused))
    debug("cv2.%s(%s) on %s: %s; passed over: %s", name, ", ".join(given), device, what, others)


def _described(value: Any, depth: int = 0) -> Any:
    """Return an argument with images as `Image`, as far as it is written."""
    try:
        if isinstance(value, (list, tuple)):
            if depth == DEEPEST:
                return value
            return rebuild_sequence(
                value, (_described(each, depth + 1) for each in value[:LONGEST])
            )
        if getattr(value, "ndim", 0) not in _IMAGE_AXES:
            return value
        shape = value.shape[1:] if value.ndim == BATCH_AXES else value.shape
        return image_of(tuple(shape), value.dtype)
    except Exception:  # noqa: BLE001 - the caller's object may have anything for its attributes
        return value


def _is_new(key: Any) -> bool:
    if key in _said:
        return False
    if len(_said) >= _MOST_SAID:
        _said.clear()
    _said.add(key)
    return True
