"""Say that an engine is being built: some take minutes, and their providers say nothing."""

from __future__ import annotations

import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

from devicecore.ort.log_capture import let_through

if TYPE_CHECKING:
    from collections.abc import Iterator

_PATIENCE_S = 3.0
_EVERY_S = 15.0


@contextmanager
def build_notice(provider: str, model: str, *, at_once: bool) -> Iterator[None]:
    """Log, as a warning of ``devicecore``, that *provider* builds an engine, and how it goes on.

    Args:
        provider: The provider's name.
        model: What messages call the model.
        at_once: Whether to say so before the build; else only where it takes some seconds.
    """
    import logging  # late: it costs a third of the import budget
    from threading import Event, Thread

    log = logging.getLogger("devicecore")
    begin, done = time.monotonic(), Event()
    what = f"{provider} builds an engine for {model}"

    def tell() -> None:
        wait = _EVERY_S if at_once else _PATIENCE_S
        while not done.wait(wait):
            with let_through():  # what the provider itself says is being collected
                log.warning("%s: %.0f s so far", what, time.monotonic() - begin)
            wait = _EVERY_S

    if at_once:
        log.warning("%s, which may take minutes; it is kept for the next start", what)
    teller = Thread(target=tell, name="devicecore-build-notice", daemon=True)
    teller.start()
    try:
        yield
    finally:
        done.set()
        teller.join()
    took = time.monotonic() - begin
    if at_once or took > _PATIENCE_S:
        log.warning("%s: done after %.0f s", what, took)
