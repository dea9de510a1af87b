"""The frame that is recorded in this thread or task, and calls on arrays of NumPy in it.

It imports nothing, so that it can be asked before numpy is imported.
"""

from __future__ import annotations

from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable

    from devicecore.migrate.recording.recording import Recording

RECORDING: Final[ContextVar[Recording | None]] = ContextVar("recorded_frame", default=None)
"""The frame of this thread or task; None outside of all of them."""

OPEN: Final[set[object]] = set()
"""The frames of all threads, which may have each other's arrays; and what a frame left behind."""


def current_recording() -> Recording | None:
    """Return the frame that is recorded in this thread or task, unless it has ended since.

    A task that a frame starts has it in its context for as long as it runs.
    """
    found = RECORDING.get()
    return None if found is None or found.is_over else found


def call_on_host(
    original: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """Call a function with arrays of numpy."""
    if not OPEN and RECORDING.get() is None:
        return original(*args, **kwargs)
    from devicecore.migrate.recording.operators import call_with_arrays  # it is needed only here

    return call_with_arrays(lambda given, named: original(*given, **named), args, kwargs)
