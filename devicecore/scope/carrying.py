"""Scopes that are handed to another thread, since threads inherit none."""

from __future__ import annotations

from contextlib import AbstractContextManager, ExitStack
from typing import TYPE_CHECKING

from devicecore.scope.chain import innermost, open_around
from devicecore.scope.decorating import Decorator
from devicecore.scope.scope import device_scope

if TYPE_CHECKING:
    from types import TracebackType

    from devicecore.scope.decorating import Function


class CapturedScopes(Decorator):
    """The scopes that were open where `capture` was called, to be entered elsewhere.

    A context manager and a decorator, as `device_scope` is; it can be used many times, in many
    threads at once.
    """

    __slots__ = ("_scopes",)

    def __init__(self, scopes: tuple[AbstractContextManager[object], ...]) -> None:
        self._scopes = scopes

    def __enter__(self) -> None:
        """Enter all of them, the outermost first.

        Raises:
            DeviceGoneError: A device was closed meanwhile.
            ScopeError: A framework would compute on another device.
        """
        with ExitStack() as entered:
            for scope in self._scopes:
                entered.enter_context(scope)
            entered.pop_all()  # all are entered, and stay so

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Leave all of them, the innermost first."""
        entered = ExitStack()
        for scope in self._scopes:
            entered.push(scope)
        entered.__exit__(kind, error, traceback)

    def for_one_step(self) -> AbstractContextManager[object]:
        """Return what a decorated function enters."""
        return CapturedScopes(
            tuple(
                scope.for_one_step() if isinstance(scope, Decorator) else scope
                for scope in self._scopes
            )
        )

    def __repr__(self) -> str:
        return f"<{len(self._scopes)} captured scopes>"


def capture() -> CapturedScopes:
    """Return the scopes that are open here, for another thread to enter.

    Examples:
        >>> from devicecore import current_device
        >>> with device_scope("cpu:0"):
        ...     scopes = capture()
        >>> with scopes:  # in any thread
        ...     current_device().device_type
        'CPU'
    """
    scopes: list[device_scope] = []
    for frame in open_around(innermost.get()):
        scopes.append(device_scope(frame.device, frameworks=frame.owner.frameworks))
        if frame.owner.frameworks is None:  # what is around it has no effect here
            break
    return CapturedScopes(tuple(reversed(scopes)))


def propagate(function: Function) -> Function:
    """Return *function* running inside the scopes that are open here, in whichever thread.

    Args:
        function: Anything that a `device_scope` can decorate.

    Raises:
        TypeError: It is a class, or cannot be called.
    """
    return capture()(function)
