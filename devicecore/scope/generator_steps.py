"""`Step`: one step of a decorated function, with the blocks that its earlier steps left open."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from devicecore.scope import scope_stack
from devicecore.scope.adapters import enter_all
from devicecore.scope.interrupts import always_left
from devicecore.scope.scope_stack import (
    ENDED,
    FORKED,
    OUTSIDE,
    SUSPENDED,
    Frame,
    entered_so_far,
    here,
    innermost,
)

if TYPE_CHECKING:
    from types import TracebackType

    from devicecore.scope.scope import device_scope

Ends: TypeAlias = frozenset[type[BaseException] | None]
"""What a step may end with so that another one follows, None for no error."""


class Step:
    """What the steps of one call run inside of, each in turn; never held across an ``await``.

    A ``with`` block inside of the function may be open when a step ends. It waits with the function
    then, and is entered again above the scope for the next step. So nobody else sees it either, and
    the order of what is open stays what it was.

    Args:
        scope: The scope.
        goes_on_after: What a step may end with so that another one follows.
    """

    __slots__ = ("_frame", "_goes_on_after", "_scope", "_waiting")

    def __init__(self, scope: device_scope, goes_on_after: Ends) -> None:
        self._scope = scope
        self._goes_on_after = goes_on_after
        self._frame: Frame = OUTSIDE
        # The open blocks, the outermost first.
        self._waiting: tuple[Frame, ...] = ()

    def __enter__(self) -> None:
        """Enter the scope, and what waits; see `device_scope.__enter__`."""
        self._scope.__enter__(False)
        self._frame = innermost.get()
        if self._waiting:
            self._resume()

    def entered_so_far(self) -> Any:
        """Return what says which scopes are open in this thread, for an interrupt."""
        return entered_so_far()

    def leave_after(self, entries: Any) -> None:
        """Leave the scope if it was entered since, and an interrupt kept it open."""
        self._scope.leave_after(entries)

    @always_left
    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Leave the scope, and what is open inside if another step follows.

        Raises:
            Exception: A framework refused to go back, and *error* is none or only the end.
        """
        del traceback
        frame = self._frame
        if kind is StopIteration or kind is StopAsyncIteration:
            error = None
        try:
            if innermost.get() is not frame and kind in self._goes_on_after:
                self._suspend()
        finally:
            if frame.thread == FORKED:  # this is a child, and its parent had entered
                frame.thread = ENDED
                if innermost.get() is frame:
                    innermost.set(frame.parent or OUTSIDE)
            else:
                scope_stack.leave(here.scopes, frame, error)

    def _suspend(self) -> None:
        """Take out all that was entered in this context since the step began."""
        own, frame = self._frame, innermost.get()
        waiting = []
        while frame is not own and frame.parent is not None:
            if frame.thread != ENDED:
                waiting.append(frame)
            frame = frame.parent
        innermost.set(own)
        self._waiting = tuple(reversed(waiting))
        scopes = here.scopes
        failed: Exception | None = None
        for each in waiting:
            try:
                if each.thread == scopes.ident:
                    scope_stack.suspend(scopes, each)
            except Exception as fault:  # noqa: BLE001 - the others go back all the same
                failed = failed or fault
        if failed is not None:
            raise failed

    def _resume(self) -> None:
        """Enter again what waits and was not left meanwhile; all of it or, on an error, nothing."""
        waiting = self._waiting
        scopes = here.scopes
        try:
            for frame in waiting:
                if frame.thread == ENDED:
                    continue
                if frame in scopes.frames and frame.thread == SUSPENDED:  # by an interrupt
                    scopes.frames.remove(frame)
                frame.parent = innermost.get()
                if frame.thread == SUSPENDED:
                    placed = frame.owner.placement_of(frame.device, scopes.adapters)
                    frame.saves = []
                    frame.thread = scopes.ident
                    scopes.frames.append(frame)
                    innermost.set(frame)
                    enter_all(placed.places, frame.saves)
                    scope_stack.suspended.discard(frame)
                innermost.set(frame)
            self._waiting = ()
        except BaseException as error:
            self._suspend()
            self._waiting = waiting
            scope_stack.leave(scopes, self._frame, error)
            raise
