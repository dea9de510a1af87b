"""Turns: kernels that are not thread-safe run one call at a time on a device."""

from __future__ import annotations

import threading
import weakref
from typing import TYPE_CHECKING

from devicecore.locks import PatientLock

if TYPE_CHECKING:
    from devicecore.kernels import Kernel


class Turns:
    """A lock for each kernel, by whichever name it is called."""

    def __init__(self) -> None:
        self._locks: weakref.WeakKeyDictionary[Kernel, PatientLock] = weakref.WeakKeyDictionary()
        self._lock = threading.Lock()

    def of(self, kernel: Kernel) -> PatientLock:
        """Return the lock of *kernel*; a kernel may call itself."""
        with self._lock:
            return self._locks.setdefault(kernel, PatientLock())
