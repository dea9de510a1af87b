"""State that a device keeps between calls: cached resources, and the kernels of a session."""

from __future__ import annotations

import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar

from devicecore.errors import UnknownResourceError
from devicecore.fork import rearm_after_fork
from devicecore.locks import PatientLock

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

T = TypeVar("T")

DEFAULT_CONTAINER = "localhost"


class _Slot:
    """One resource, made by whoever comes first while the others wait."""

    def __init__(self) -> None:
        self.lock = PatientLock()  # who asks for it while making it recurses, and is told so
        self.made = False
        self.value: Any = None


class ResourceMgr:
    """Cached state of one device, in named containers, as TensorFlow's ``ResourceMgr`` keeps it.

    Resources are things that are costly to make, such as a session with its model. One with a
    ``close()`` is closed when it is dropped.
    """

    def __init__(self) -> None:
        self._containers: dict[str, dict[Hashable, _Slot]] = {}
        self._lock = threading.Lock()
        rearm_after_fork(self)

    def lookup_or_create(self, container: str, name: Hashable, create: Callable[[], T]) -> T:
        """Return the resource under *name*, made by *create* if there is none.

        *create* runs at most once at a time for each name, without the manager's lock; if it
        raises, nothing is kept and the next caller tries again.
        """
        with self._lock:
            slot = self._containers.setdefault(container, {}).setdefault(name, _Slot())
        if not slot.made:
            with slot.lock:
                if not slot.made:
                    slot.value = create()
                    slot.made = True
        value: T = slot.value
        return value

    def lookup(self, container: str, name: Hashable) -> Any:
        """Return the resource under *name*.

        Raises:
            UnknownResourceError: There is none, or it is still being made.
        """
        with self._lock:
            slot = self._containers.get(container, {}).get(name)
        if slot is None or not slot.made:
            raise UnknownResourceError(container, str(name))
        return slot.value

    def delete(self, container: str, name: Hashable) -> None:
        """Drop the resource under *name*.

        Raises:
            UnknownResourceError: There is none.
        """
        with self._lock:
            slot = self._containers.get(container, {}).pop(name, None)
        if slot is None:
            raise UnknownResourceError(container, str(name))
        _close(slot.value)

    def clear(self, container: str | None = None) -> None:
        """Drop all resources of *container*, or of all containers."""
        with self._lock:
            if container is None:
                dropped, self._containers = list(self._containers.values()), {}
            else:
                dropped = [self._containers.pop(container, {})]
        for slots in dropped:
            for slot in slots.values():
                _close(slot.value)

    def containers(self) -> dict[str, int]:
        """Return how many resources each container holds."""
        with self._lock:
            return {
                name: sum(slot.made for slot in slots.values())
                for name, slots in self._containers.items()
            }

    def after_fork(self) -> None:
        """Start empty in a forked child: sessions have threads, and those are not inherited."""
        self._lock = threading.Lock()
        if self._containers:
            _keep_for_ever(self._containers)
        self._containers = {}


def _keep_for_ever(inherited: object) -> None:
    """Never free *inherited*, not even when the forked child ends.

    Its destructors would wait for the parent's threads, which the child does not have.
    """
    import ctypes

    ctypes.pythonapi.Py_IncRef(ctypes.py_object(inherited))


class OpSegment:
    """Stateful kernels kept for a session, as TensorFlow's ``OpSegment`` keeps them.

    A session is held by a handle; its kernels live until its last hold is given up.
    """

    def __init__(self) -> None:
        self._holds: dict[str, int] = {}
        self._kernels = ResourceMgr()
        self._lock = threading.Lock()
        rearm_after_fork(self)

    def add_hold(self, session: str) -> None:
        """Keep the kernels of *session* until `remove_hold` was called as often as this."""
        with self._lock:
            self._holds[session] = self._holds.get(session, 0) + 1

    def remove_hold(self, session: str) -> None:
        """Give up one hold; the last one drops the session's kernels.

        Raises:
            UnknownResourceError: Nobody holds *session*.
        """
        with self._lock:
            if session not in self._holds:
                raise UnknownResourceError("sessions", session)
            self._holds[session] -= 1
            if self._holds[session]:
                return
            del self._holds[session]
        self._kernels.clear(session)

    def find_or_create(self, session: str, node: Hashable, create: Callable[[], T]) -> T:
        """Return the kernel of *node* in *session*, made by *create* on first use.

        Raises:
            UnknownResourceError: Nobody holds *session*.
        """
        with self._lock:
            if session not in self._holds:
                raise UnknownResourceError("sessions", session)
        return self._kernels.lookup_or_create(session, node, create)

    def clear(self) -> None:
        """Drop all sessions and their kernels."""
        with self._lock:
            self._holds.clear()
        self._kernels.clear()

    def after_fork(self) -> None:
        """Take a lock of its own in a forked child; its kernels start anew."""
        self._lock = threading.Lock()


def _close(resource: Any) -> None:
    close = getattr(resource, "close", None)
    if callable(close):
        with suppress(Exception):  # a resource is foreign, and it is being dropped anyway
            close()
