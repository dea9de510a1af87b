"""`Buffer`: values shared by an array and its views, on a device until they are read or written."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from devicecore.fork import rearm_after_fork

if TYPE_CHECKING:
    from devicecore.migrate.recording.nodes import Node

Array = np.ndarray[Any, Any]


class BufferOwner(Protocol):
    """Keeps account of the buffers of one frame."""

    def fetch(self, node: Node) -> Array:
        """Return values as an array of numpy, in memory of its own."""
        ...

    def keep(self, array: Array) -> Node | None:
        """Return the values of an array of the program; None if it keeps no more."""
        ...

    def now(self) -> BufferOwner:
        """Return whose arrays are made of its own now."""
        ...

    def watch(self, memory: Buffer) -> None:
        """Remember that such an array was made."""


class _Publishing:
    """Lets one of several threads say which array on the host is the one that counts."""

    def __init__(self) -> None:
        self.after_fork()
        rearm_after_fork(self)

    def after_fork(self) -> None:
        """Make a lock that no thread of the parent holds."""
        self.lock = threading.Lock()


_publishing = _Publishing()


class Buffer:
    """Values that an array and its views share, wherever they are.

    Args:
        node: The values of the whole.
        frame: Where they come from.

    Attributes:
        frame: Where they come from.
        node: The values, as long as they are not on the host.
        host: The array on the host, once anything of it was there. From then on it is the only one
            that counts, and others may write into it.
    """

    __slots__ = ("__weakref__", "frame", "host", "node")

    def __init__(self, node: Node, frame: BufferOwner) -> None:
        self.node: Node = node
        self.host: Array | None = None
        self.frame: BufferOwner = frame
        frame.watch(self)

    def on_host(self) -> Array:
        """Return the array on the host."""
        host = self.host
        if host is None:
            found = self.frame.fetch(self.node)
            with _publishing.lock:  # not while it is fetched, which takes other locks
                host = self.host
                if host is None:
                    host = self.host = found
        return host
