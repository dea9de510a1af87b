"""`Users`: counts who uses something, in ``with`` blocks or calls; the last one releases it."""

from __future__ import annotations

import functools
import inspect
from abc import ABC, abstractmethod
from threading import get_ident
from typing import TYPE_CHECKING, Any, Self

from devicecore.migrate.patching.program_line import warn
from devicecore.scope.interrupts import always_left

if TYPE_CHECKING:
    from contextlib import AbstractContextManager
    from types import TracebackType


class Users:
    """Who has begun to use something and has not ended, and in which ``with`` blocks.

    A user is any object, and in the list before anything is done for it, so that after an interrupt
    it is known for whom something is to be undone.
    """

    __slots__ = ("_blocks", "_users")

    def __init__(self) -> None:
        self._users: list[object] = []
        self._blocks: list[tuple[int, object]] = []

    def __len__(self) -> int:
        return len(self._users)

    def add(self, user: object) -> None:
        """Add a user."""
        self._users.append(user)

    def has(self, user: object) -> bool:
        """Return whether *user* has not ended."""
        return user in self._users

    def remove(self, user: object) -> None:
        """Remove *user*; another one, the last, if that was removed already."""
        if self._users:
            self._users.remove(user if user in self._users else self._users[-1])

    # --- with blocks --------------------------------------------------------------------------

    def begin_block(self) -> object:
        """Return the user that a block of this thread is from now on."""
        user = object()
        self._blocks.append((get_ident(), user))
        return user

    def end_block(self, user: object) -> None:
        """Forget a block."""
        self._blocks[:] = [each for each in self._blocks if each[1] is not user]

    def blocks(self) -> list[Any]:
        """Return those of this thread, the innermost last."""
        return [user for thread, user in list(self._blocks) if thread == get_ident()]


class UsedInBlocks(ABC):
    """Something that is there in ``with`` blocks, of which an interrupt leaves none open."""

    __slots__ = ("_users",)

    def __init__(self) -> None:
        self._users = Users()

    @abstractmethod
    def _begin(self, user: object) -> None:
        """Be there for *user*, who is one of `_users` before anything is done."""

    @abstractmethod
    def _release(self, user: object) -> list[str]:
        """Be there for *user* no more, and return what could not be undone, in words."""

    def __enter__(self) -> Self:
        """Begin it; see the class."""
        user = self._users.begin_block()
        try:
            self._begin(user)
        except BaseException:  # an interrupt, too, leaves nothing half done
            self._end(user)
            raise
        return self

    def entered_so_far(self) -> Any:
        """Return what says which blocks of this thread it is there for; for an interrupt."""
        return self._users.blocks()

    def leave_after(self, entries: Any) -> None:
        """End it for blocks that have begun since, and are over.

        Args:
            entries: What `entered_so_far` has returned.
        """
        for user in reversed(self._users.blocks()):
            if user not in entries:
                self._end(user)

    def _end(self, user: object) -> None:
        if self._users.has(user):
            self._release(user)
        self._users.end_block(user)

    @always_left
    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """End it; see the class."""
        user = next(reversed(self._users.blocks()), None)
        texts = self._release(user)
        self._users.end_block(user)
        if texts:
            warn("; ".join(texts))


def during_calls(context: AbstractContextManager[object], function: Any) -> Any:
    """Return a function that runs inside of *context*; see `PipelineMigrator.__call__`."""
    if inspect.isasyncgenfunction(function):
        msg = f"{function!r} is an asynchronous generator function; use a with block inside"
        raise TypeError(msg)
    if inspect.isgeneratorfunction(function):

        @functools.wraps(function)
        def steps(*args: Any, **kwargs: Any) -> Any:
            with context:
                return (yield from function(*args, **kwargs))

        return steps
    if inspect.iscoroutinefunction(function):

        @functools.wraps(function)
        async def later(*args: Any, **kwargs: Any) -> Any:
            with context:
                return await function(*args, **kwargs)

        return later

    @functools.wraps(function)
    def at_once(*args: Any, **kwargs: Any) -> Any:
        with context:
            return function(*args, **kwargs)

    return at_once
