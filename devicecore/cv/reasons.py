"""`Reasons`: caches why calls have no kernel, once for equal calls."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from attrs import frozen

from devicecore.cv.image import Image, Place

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

# To find the arguments takes a millisecond. Calls with random numbers or sizes are all different
# ones, and nearly always refused for the same argument: after so many searches, the last one's
# answer stands for those to come. Values are each call's own.
_MOST_FOUND = 8
_MOST_KEPT = 1024


@frozen(eq=False)
class KeyedCall:
    """One call, as planners are given it.

    Attributes:
        positional: Positional arguments, with an `Image` in the place of each image.
        named: The others.
        key: Equal for calls of one kind; None where something cannot be a key.
        misplaced: Why the place for the result is for OpenCV to judge, or nothing.
    """

    positional: Sequence[Any]
    named: Mapping[str, Any]
    key: Any
    misplaced: str = ""


class Reasons:
    """What was found for the calls of one function."""

    def __init__(self) -> None:
        self._texts: dict[Any, str] = {}
        self._causes: dict[Any, tuple[tuple[str, ...], ...]] = {}

    def text(self, about: Any, call: KeyedCall, write: Callable[[], str]) -> str:
        """Return the reason for a call of a kind.

        Args:
            about: What else it depends on.
            call: The call.
            write: Returns it; not asked again for a call with the same key.
        """
        if call.key is None:
            return write()
        key = (about, call.key)
        known = self._texts.get(key)
        if known is None:
            known = write()
            if len(self._texts) >= _MOST_KEPT:
                self._texts.clear()
            self._texts[key] = known
        return known

    def causes(
        self, about: Any, call: KeyedCall, search: Callable[[], tuple[str, ...]]
    ) -> tuple[str, ...]:
        """Return the arguments that calls are refused for which differ in numbers and sizes only.

        Args:
            about: What else it depends on.
            call: One of them.
            search: Finds them.
        """
        named = ((name, likeness(value)) for name, value in call.named.items())
        alike = (about, *map(likeness, call.positional), *named)
        known = self._causes.get(alike, ())
        if len(known) >= _MOST_FOUND:
            return known[-1]
        found = search()
        if len(self._causes) >= _MOST_KEPT:
            self._causes.clear()
        self._causes[alike] = (*known, found)
        return found


def likeness(value: Any) -> Any:
    """Return what matters of an argument: its type and, of flags and other integers, the value."""
    own = type(value)
    if isinstance(value, Image):
        return own, value.dtype, value.channels, value.has_channels, value.pixels > 0, value.missing
    if isinstance(value, Place):
        return own, value.is_operand
    if isinstance(value, np.ndarray):
        return own, value.dtype, value.ndim
    if own in {int, bool, str}:
        return own, value
    if own in {tuple, list}:
        return own, *(likeness(each) if isinstance(each, Image) else type(each) for each in value)
    return own
