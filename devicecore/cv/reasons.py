"""`Reasons`: why calls have no kernel, found once for those that are alike."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from devicecore.cv.image import Image, Place
from devicecore.cv.kinds import kind_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

# To find a reason takes a millisecond. Calls with random numbers or sizes are all different ones,
# and nearly always for one reason: after so many, the last one found stands for those to come.
_MOST_FOUND = 8
_MOST_KEPT = 1024


class Reasons:
    """What was found for the calls of one function."""

    def __init__(self) -> None:
        self._of_calls: dict[Any, str] = {}
        self._of_alike: dict[Any, tuple[str, ...]] = {}

    def find(
        self,
        about: Any,
        positional: Sequence[Any],
        named: Mapping[str, Any],
        search: Callable[[], str],
    ) -> str:
        """Return the reason for a call, or for those that differ in numbers and sizes only.

        Args:
            about: What else it depends on.
            positional: Positional arguments, with an `Image` in the place of each image.
            named: The others.
            search: Finds it.
        """
        call: Any = None
        try:
            call = (about, *map(kind_of, positional), *map(kind_of, named.items()))
            known = self._of_calls.get(call)
        except TypeError:  # something that cannot be a key
            known = None
        if known is not None:
            return known
        alike = (about, *map(_likeness, positional), *((k, _likeness(v)) for k, v in named.items()))
        found = self._of_alike.get(alike, ())
        if len(found) >= _MOST_FOUND:
            return found[-1]
        known = search()
        if max(len(self._of_calls), len(self._of_alike)) >= _MOST_KEPT:
            self._of_calls.clear()
            self._of_alike.clear()
        self._of_alike[alike] = (*found, known)
        if call is not None:
            self._of_calls[call] = known
        return known


def _likeness(value: Any) -> Any:
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
        return own, *(_likeness(each) if isinstance(each, Image) else type(each) for each in value)
    return own
