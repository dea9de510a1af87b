"""Scopes that are handed to another thread, since threads inherit none."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from devicecore.scope.decorator import Decorator
from devicecore.scope.interrupts import always_left
from devicecore.scope.scope_stack import entered_so_far, innermost, open_around

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import TracebackType

    from devicecore.scope.decorator import Function
    from devicecore.scope.generator_steps import Ends, Step
    from devicecore.scope.scope import device_scope


class _Together:
    """Several scopes, or steps of some, as one; the outermost first."""

    __slots__ = ("_contexts",)

    def __init__(self, contexts: Sequence[device_scope | Step]) -> None:
        self._contexts = contexts

    def __enter__(self) -> None:
        """Enter all of them, the outermost first.

        Raises:
            DeviceGoneError: A device was closed meanwhile.
            ScopeError: A framework would compute on another device.
        """
        entries = self.entered_so_far()
        try:
            for context in self._contexts:
                context.__enter__()
        except BaseException:  # a framework's, or an interrupt; it leaves none of them open
            self.leave_after(entries)
            raise

    def entered_so_far(self) -> Any:
        """Return what says which scopes are open in this thread, for an interrupt."""
        return entered_so_far()

    def leave_after(self, entries: Any) -> None:
        """Leave those that were entered since, and an interrupt kept open.

        Args:
            entries: What `entered_so_far` has returned.
        """
        for context in reversed(self._contexts):
            context.leave_after(entries)

    @always_left
    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Leave all of them, the innermost first."""
        failed: Exception | None = None
        for context in reversed(self._contexts):
            try:
                context.__exit__(kind, error, traceback)
            except Exception as fault:  # noqa: BLE001 - a framework's; the others are left too
                failed = failed or fault
        if failed is not None:
            raise failed


class CapturedScopes(_Together, Decorator):
    """The scopes that were open where `capture` was called, to be entered elsewhere.

    A context manager and a decorator, as `device_scope` is; it can be used many times, in many
    threads at once.
    """

    __slots__ = ("_scopes",)

    def __init__(self, scopes: Sequence[device_scope]) -> None:
        super().__init__(scopes)
        self._scopes = scopes

    def for_steps(self, goes_on_after: Ends) -> _Together:
        """Return what the steps of one call of a decorated function enter."""
        return _Together([scope.for_steps(goes_on_after) for scope in self._scopes])

    def __repr__(self) -> str:
        return f"<{len(self._scopes)} captured scopes>"


def capture() -> CapturedScopes:
    """Return the scopes that are open here, for another thread to enter.

    Examples:
        >>> from devicecore import current_device, device_scope
        >>> with device_scope("cpu:0"):
        ...     scopes = capture()
        >>> with scopes:  # in any thread
        ...     current_device().device_type
        'CPU'
    """
    # All of them: a framework that cannot use the device of one follows the one around it.
    scopes = [frame.owner.at(frame.device) for frame in open_around(innermost.get())]
    return CapturedScopes(tuple(reversed(scopes)))


def propagate(function: Function) -> Function:
    """Return *function* running inside the scopes that are open here, in whichever thread.

    Args:
        function: Anything that a `device_scope` can decorate.

    Raises:
        TypeError: It is a class, or cannot be called.
    """
    return capture()(function)
