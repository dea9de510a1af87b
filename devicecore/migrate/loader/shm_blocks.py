"""Shared memory blocks between a worker and the process that it loads for."""

from __future__ import annotations

import os
import threading
import weakref
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from devicecore.fork import rearm_after_fork

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    import torch

    Array = np.ndarray[Any, Any]


class ShmBlock:
    """A shared memory block. Its first byte says whether it is in use.

    Args:
        owner: Whose it is, in all processes.
        name: Which one of those.
        memory: Its bytes.

    Attributes:
        is_locked: Whether it is locked into its pages, so that a GPU copies from it by itself.
    """

    __slots__ = ("__weakref__", "_is_sent", "bytes", "is_locked", "memory", "name", "owner")

    def __init__(self, owner: str, name: str, memory: torch.Tensor) -> None:
        self.owner: Final = owner
        self.name: Final = name
        self.memory: Final = memory
        self.bytes: Final[Array] = memory.numpy()
        self.is_locked: bool = False
        self._is_sent = False

    @property
    def is_free(self) -> bool:
        """Whether nobody reads it any more."""
        return not self.bytes[0]

    def take(self) -> None:
        """Say that it is in use."""
        self.bytes[0] = 1

    def free(self) -> None:
        """Say that it may be filled anew."""
        self.bytes[0] = 0

    def view(self, start: int, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
        """Return the array that lies there."""
        return np.ndarray(shape, dtype, self.bytes, start)

    def __reduce__(self) -> Any:
        memory, self._is_sent = None if self._is_sent else self.memory, True
        return _lent, (self.owner, self.name, memory)


class Loan:
    """A block lent to one batch; free again once the batch is read.

    So it is once nobody has the batch any more, such as one that was loaded ahead for a program
    which has stopped.

    Args:
        block: The piece.

    Attributes:
        end: Called when it was read; after the first time it does nothing.
    """

    __slots__ = ("__weakref__", "block", "end")

    def __init__(self, block: ShmBlock) -> None:
        self.block: Final = block
        end = weakref.finalize(self, _free, block, os.getpid())
        end.atexit = False  # by then the workers have ended
        self.end: Final[Callable[[], Any]] = end


def _free(block: ShmBlock, process: int) -> None:
    if os.getpid() == process:  # what a forked child has of a loan is none of its own
        block.free()


class _ShmBlocks:
    """The blocks of other processes that this one has attached, by owner."""

    def __init__(self) -> None:
        self._known: dict[str, dict[str, ShmBlock]] = {}
        self.after_fork()
        rearm_after_fork(self)

    def after_fork(self) -> None:
        """Make a lock that no thread of the parent holds."""
        self._lock = threading.Lock()

    def attach(self, owner: str, name: str, memory: torch.Tensor | None) -> ShmBlock:
        """Return a piece by its name; the first time it comes with its memory."""
        with self._lock:
            own = self._known.setdefault(owner, {})
            if memory is not None:
                own[name] = ShmBlock(owner, name, memory)
            return own[name]

    def names(self) -> set[str]:
        """Return the names of all pieces that are known."""
        with self._lock:
            return {name for own in self._known.values() for name in own}

    def forget(self, owner: str) -> Iterable[ShmBlock]:
        """Forget the pieces of one of whom nothing will come any more, and return them."""
        with self._lock:
            return self._known.pop(owner, {}).values()


SHM_BLOCKS: Final = _ShmBlocks()
"""Of this process."""


def _lent(owner: str, name: str, memory: torch.Tensor | None) -> Loan:
    return Loan(SHM_BLOCKS.attach(owner, name, memory))
