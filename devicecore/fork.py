"""What has to be made anew in a forked child.

A lock that another thread held, a thread pool and a driver context do not survive ``fork``. Whoever
owns one subscribes here; the subscription is weak, so that it keeps nothing alive.
"""

from __future__ import annotations

import os
import weakref
from typing import Protocol


class Rearmed(Protocol):
    """Something that puts itself right in a forked child."""

    def after_fork(self) -> None:
        """Make locks, pools and tables anew, or mark what was opened before as gone."""


_subscribers: weakref.WeakSet[Rearmed] = weakref.WeakSet()
_installed = False


def rearm_after_fork(subscriber: Rearmed) -> None:
    """Call ``subscriber.after_fork()`` in every child forked from now on."""
    global _installed  # noqa: PLW0603 - the hook of the process can be set once only
    if not _installed:
        _installed = True
        if hasattr(os, "register_at_fork"):  # not on Windows, where nothing forks
            os.register_at_fork(after_in_child=_rearm)
    _subscribers.add(subscriber)


def _rearm() -> None:
    for subscriber in list(_subscribers):
        subscriber.after_fork()
