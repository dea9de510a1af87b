"""`Attempt`: one policy for trying a device: verify, count faults, give up, fall back."""

from __future__ import annotations

import sys
import threading
from contextlib import nullcontext
from typing import TYPE_CHECKING, TypeVar

from devicecore.errors import RefusedCallError
from devicecore.fork import rearm_after_fork
from devicecore.ledger import default_ledger
from devicecore.runtime import host_cpu

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

Answer = TypeVar("Answer")

# After so many faults one after the other, nothing more is tried.
_MOST_FAULTS = 3


class Attempt:
    """Tries something on a device: verifies, counts faults, gives up, falls back to the original.

    The calls of a path have one, frames recorded for a path share it, and so have the samples and
    the batches of a loader.

    Args:
        path: What is tried, as reports name it.
        source: The device that it is tried on.
        is_strict: Whether an error takes the place of the original's answer.
        verify: Of how many tries the original computes one, too; 0 for none.
        inside_kernels: Returns what the ledger is written inside of, so that nothing of that is
            migrated.

    Attributes:
        off: Why nothing is tried any more; empty while it is.
    """

    def __init__(
        self,
        path: str,
        source: str,
        *,
        is_strict: bool = False,
        verify: int = 0,
        inside_kernels: Callable[[], AbstractContextManager[object]] = nullcontext,
    ) -> None:
        self.off: str = ""
        self._path = path
        self._source = source
        self._is_strict = is_strict
        self._verify = verify
        self._inside_kernels = inside_kernels
        self._faults = 0
        self._since_verified = 0
        self.after_fork()
        rearm_after_fork(self)

    def after_fork(self) -> None:
        """Make a lock that no thread of the parent holds."""
        self._lock = threading.Lock()

    def is_due(self) -> bool:
        """Return whether this try is the one of *verify* that is verified."""
        if not self._verify:
            return False
        with self._lock:
            self._since_verified += 1
            is_due = self._since_verified >= self._verify
            if is_due:
                self._since_verified = 0
            return is_due

    def verify_next(self) -> None:
        """Verify the next try in the place of one that nothing was computed for."""
        with self._lock:
            self._since_verified = sys.maxsize

    def succeeded(self) -> None:
        """Count faults anew."""
        self._faults = 0

    def failed(self, reason: str) -> None:
        """Count a fault, and give up after several in a row."""
        with self._lock:
            self._faults += 1
            if self._faults >= _MOST_FAULTS and not self.off:
                self.off = f"switched off after {self._faults} faults, the last one: {reason}"

    def switch_off(self, reason: str) -> None:
        """Give up."""
        self.off = reason

    def refuse(self, reason: str) -> None:
        """Raise an error where the original may not answer.

        Raises:
            RefusedCallError: An error takes the place of the original's answer.
        """
        if self._is_strict:
            raise RefusedCallError(self._path, self._source, {"the migrator": reason})

    def record(self, reason: str) -> None:
        """Write into the ledger that the original answers.

        Raises:
            FallbackForbiddenError: The ledger does not allow that.
        """
        with self._inside_kernels():  # logging may call what the plan names
            default_ledger().record(self._path, self._source, host_cpu().name, reason)

    def instead(
        self, reason: str, original: Callable[[], Answer], *, is_fault: bool = True
    ) -> Answer:
        """Return the original's answer to what was tried in vain.

        Count the fault only after the original succeeds; if it raises too, the arguments were bad.

        Args:
            reason: Why it was in vain.
            original: Answers.
            is_fault: Whether that was a fault, and no refusal.
        """
        answer = original()
        if is_fault:
            self.failed(reason)
        return answer
