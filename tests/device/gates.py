"""`Gate`: a kernel that tests hold open."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from devicecore.device import Device

PATIENCE_S = 60.0


class Gate:
    """A kernel that waits until it may go on."""

    def __init__(self) -> None:
        self.entered = threading.Semaphore(0)
        self.open = threading.Event()

    def __call__(self, device: Device, x: Any = None) -> Any:
        self.entered.release()
        assert self.open.wait(PATIENCE_S)
        return x
