"""The ledger: every move off the device that was wanted, counted and never silent."""

from __future__ import annotations

import threading
from collections import Counter
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

from attrs import frozen

from devicecore.errors import FallbackForbiddenError
from devicecore.fork import rearm_after_fork

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

# Reasons may hold a framework's words, so there could be any number of different ones.
_MOST_MOVES = 4096


@frozen(order=True)
class Move:
    """One kind of move off the first choice.

    Attributes:
        op: What moved, such as an operation's name.
        source: The device that was wanted.
        target: The device that was taken.
        reason: Why.
    """

    op: str
    source: str
    target: str
    reason: str


_REST = ("(others)", "", "", f"more than {_MOST_MOVES} different moves")


class Ledger:
    """Counts moves by (op, source, target, reason), within a budget.

    The first move of a kind is also logged, as a warning of the logger ``devicecore``.

    Args:
        budget: How many moves are allowed in all; None for any number, 0 to forbid them.

    Examples:
        >>> ledger = Ledger()
        >>> ledger.record("cv2.resize", "CUDA:0", "CPU:0", "out of memory")
        >>> ledger.total
        1
        >>> with ledger.limited_to(0):
        ...     ledger.record("cv2.resize", "CUDA:0", "CPU:0", "out of memory")
        Traceback (most recent call last):
        devicecore.errors.FallbackForbiddenError: cv2.resize would move from CUDA:0 to CPU:0: ...
    """

    def __init__(self, budget: int | None = None) -> None:
        self.budget = budget
        # Tuples: a call that moves is one of many, and a class takes longer to hash.
        self._counts: Counter[tuple[str, str, str, str]] = Counter()
        self._total = 0
        self._lock = threading.Lock()
        rearm_after_fork(self)

    def record(self, op: str, source: str, target: str, reason: str) -> None:
        """Count one move, before it is made.

        Raises:
            FallbackForbiddenError: The budget of the ledger, or of a block around the caller, is
                used up. The move is not counted, and must not be made.
        """
        move = (op, source, target, reason)
        limits = [limit for limit in _limits.get() if limit.ledger is self]
        with self._lock:
            if self.budget is not None and self._total >= self.budget:
                raise FallbackForbiddenError(op, source, target, reason, self.budget)
            for limit in limits:
                if limit.used >= limit.budget:
                    raise FallbackForbiddenError(op, source, target, reason, limit.budget)
            for limit in limits:
                limit.used += 1
            count = self._counts.get(move)
            if count is None and len(self._counts) >= _MOST_MOVES:
                move = _REST
                count = self._counts.get(move)
            self._counts[move] = (count or 0) + 1
            self._total += 1
        if count is None:
            _log(Move(*move))

    @contextmanager
    def limited_to(self, budget: int) -> Iterator[None]:
        """Allow *budget* moves inside the block, for this thread or task; 0 forbids them."""
        token = _limits.set((*_limits.get(), _Limit(self, budget)))
        try:
            yield
        finally:
            _limits.reset(token)

    def moves(self) -> Mapping[Move, int]:
        """Return how often each move was made, most often first."""
        with self._lock:
            return {Move(*move): count for move, count in self._counts.most_common()}

    @property
    def total(self) -> int:
        """How many moves were made in all."""
        return self._total

    def clear(self) -> None:
        """Forget all moves, so that the budget starts anew."""
        with self._lock:
            self._counts.clear()
            self._total = 0

    def after_fork(self) -> None:
        """Take a lock of its own in a forked child."""
        self._lock = threading.Lock()


class _Limit:
    """The budget of one block; the ledger's lock guards what is used of it."""

    def __init__(self, ledger: Ledger, budget: int) -> None:
        self.ledger = ledger
        self.budget = budget
        self.used = 0


# The limits of all blocks around the caller, of whichever ledger.
_limits: ContextVar[tuple[_Limit, ...]] = ContextVar("devicecore_limits", default=())

_default = Ledger()


def default_ledger() -> Ledger:
    """Return the ledger that devicecore itself writes to."""
    return _default


def _log(move: Move) -> None:
    import logging  # late: it costs a third of the import budget

    logger = logging.getLogger("devicecore")
    if move.source == move.target != "":  # its kernels were wanted: nothing leaves a device
        text = "%s is left to the original function on %s: %s"
        logger.warning(text, move.op, move.target, move.reason)
    else:
        text = "%s moved from %s to %s: %s"
        logger.warning(text, move.op, move.source, move.target, move.reason)
