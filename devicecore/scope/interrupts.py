"""Blocks that are left even where an interrupt comes before ``__exit__`` has begun.

Python looks for Ctrl-C where a function begins, so also between the end of a ``with`` block and the
first line of an ``__exit__``, and between the last line of an ``__enter__`` and the block.
"""

from __future__ import annotations

import sys
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, cast
from weakref import ref

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

Exit = TypeVar("Exit", bound="Callable[..., Any]")


class Leavable(Protocol):
    """Something whose ``__exit__`` is an `always_left` one."""

    def entered_so_far(self) -> Any:
        """Return what says which entries there are already, before a block is entered."""

    def leave_after(self, entries: Any) -> None:
        """Leave what this thread has entered after *entries*; nothing if that was left already.

        Args:
            entries: What `entered_so_far` has returned.
        """


def always_left(function: Exit) -> Exit:
    """Return an ``__exit__`` that is made up for where it does not run, or not to its end.

    A ``with`` statement holds what it looks up as ``__exit__`` from before ``__enter__`` until the
    block is over, and nobody else does. So when that goes, the block is over. An `ExitStack` holds
    what it looks up on the class in the same way.

    Args:
        function: The ``__exit__`` of a `Leavable`; or its ``__aexit__``, which leaves at once and
            returns what can be awaited.
    """
    return cast("Exit", _Exit(function))


class _Exit:
    """A descriptor: each ``with`` statement gets an ``__exit__`` of its own."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function
        self.__doc__ = function.__doc__

    def __get__(self, owner: Any, kind: Any = None) -> Any:
        if owner is None:
            return self._of_class(sys._getframe(1), kind)  # noqa: SLF001 - who asks
        block = [self._function, owner, owner.entered_so_far(), None]
        # No method of `block`: its frame, in a traceback, must not hold what the statement holds.
        leave = partial(_leave, block)
        block[_WATCH] = watch = _StackReference(leave, _gone)
        watch.block = block
        return leave

    def _of_class(self, caller: FrameType, kind: Any) -> Any:
        """Return what takes its owner as an argument, watched where *caller* is an exit stack.

        `ExitStack.enter_context` looks up what ``type(manager)`` has before it enters *manager*,
        and holds it until it leaves. Nobody else is known to hold it so long.
        """
        if caller.f_globals.get("__name__") != "contextlib":
            return self._function
        owners = {id(each): each for each in caller.f_locals.values() if type(each) is kind}
        if len(owners) != 1:
            return self._function
        (owner,) = owners.values()
        block = [self._function, owner, owner.entered_so_far(), None]
        leave = partial(_leave_owner, block)
        block[_WATCH] = watch = _StackReference(leave, _gone)
        watch.block = block
        _watches[id(block)] = watch
        return leave


_WATCH = 3
# An `ExitStack` may end in a cycle of garbage, and such a cycle calls nothing that is part of it.
_watches: dict[int, _StackReference] = {}


class _StackReference(ref):  # type: ignore[type-arg]
    __slots__ = ("block",)

    block: list[Any]


def _leave(block: list[Any], kind: Any, error: Any, traceback: Any) -> Any:
    try:
        result = block[0](block[1], kind, error, traceback)
    except Exception:  # a framework's; an interrupt, which is none, leaves the watch
        block[_WATCH] = None  # it has run to its end
        raise
    block[_WATCH] = None
    return result


def _leave_owner(block: list[Any], _: Any, kind: Any, error: Any, traceback: Any) -> Any:
    try:
        result = _leave(block, kind, error, traceback)
    except BaseException:  # a framework's, or an interrupt; it is made up for here and now
        # The traceback, and a cycle that `ExitStack` makes of it, may hold what is watched long.
        if block[_WATCH] is not None:
            _make_up(block)
        raise
    finally:
        _watches.pop(id(block), None)
    return result


def _gone(watch: _StackReference) -> None:
    block = getattr(watch, "block", None)
    if block is not None:  # else an interrupt came before there was a block
        _make_up(block)
        _watches.pop(id(block), None)


def _make_up(block: list[Any]) -> None:
    _, owner, entries, _ = block
    interrupt = None
    while block[_WATCH] is not None:
        try:
            owner.leave_after(entries)
            block[_WATCH] = None
        except Exception:  # a framework refused to go back; the scope is left all the same
            block[_WATCH] = None
            raise
        except BaseException as another:  # noqa: BLE001 - raised below, when it is left
            interrupt = another
    if interrupt is not None:
        raise interrupt
