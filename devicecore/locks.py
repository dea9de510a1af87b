"""`PatientLock`: a lock that may be held for long, while the main thread still hears Ctrl-C."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:

    class _Base:
        def acquire(self, *, timeout: float) -> bool: ...
        def release(self) -> None: ...
        def __exit__(self, *error: object) -> None: ...
        def _is_owned(self) -> bool: ...
else:
    _Base = type(threading.RLock())

# Python hears a Ctrl-C between two instructions only. A wait without an end does not end for one
# that the system gives to another thread, so waits have this length.
SLICE_S = 0.2


class PatientLock(_Base):
    """A `threading.RLock` that is waited for in slices; for ``with`` statements.

    For locks that are held while something foreign runs: a kernel, a self-test, the opening of a
    session.
    """

    __slots__ = ()

    def __enter__(self) -> bool:
        """Wait for it; an interrupt leaves it as it was."""
        is_owner = self._is_owned()  # then nothing interrupts between here and what is below
        try:
            while True:
                if self.acquire(timeout=SLICE_S):
                    return True
        except BaseException:  # an interrupt: it may have come just when the lock was had
            if is_owner or self._is_owned():
                self.release()
            raise
