"""Memory that a worker shares with the process that it loads for, used again and again.

New memory costs more than the copy into it, and each piece of shared memory takes a file
descriptor. So a worker fills a piece for each batch, the other process says in the piece itself
that it has read it, and then the worker fills it anew.
"""

from __future__ import annotations

import threading
import uuid
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import torch

from devicecore.fork import rearm_after_fork
from devicecore.migrate.lazy.nodes import Node, in_order, source

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    Array = np.ndarray[Any, Any]

# Where arrays begin; the first of these has the sign that a piece is in use.
_ALIGNMENT: Final = 256
_SMALLEST: Final = 1 << 20


class Piece:
    """Some shared memory.

    Args:
        name: Which piece it is, in all processes.
        memory: Its bytes.
    """

    __slots__ = ("bytes", "is_sent", "memory", "name")

    def __init__(self, name: str, memory: torch.Tensor) -> None:
        self.name: str = name
        self.memory: torch.Tensor = memory
        self.bytes: Array = memory.numpy()
        self.is_sent: bool = False

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
        memory, self.is_sent = None if self.is_sent else self.memory, True
        return _attached, (self.name, memory)


class Shared(Node):
    """An array in a piece of shared memory.

    Attributes:
        piece: The piece.
        start: Where the array begins, in bytes.
    """

    __slots__ = ("piece", "start")

    def __init__(
        self, piece: Piece, start: int, shape: tuple[int, ...], dtype: np.dtype[Any]
    ) -> None:
        array = piece.view(start, shape, dtype)
        super().__init__(source(array).kind, (), array)
        self.piece: Final = piece
        self.start: Final = start

    def __reduce__(self) -> Any:
        return Shared, (self.piece, self.start, self.kind.shape, self.kind.dtype)


class Arena:
    """Copies arrays into pieces of shared memory."""

    def __init__(self) -> None:
        self._pieces: list[Piece] = []
        self._filled: set[Piece] = set()
        self._sent: set[Piece] = set()
        self._piece: Piece | None = None
        self._used = 0
        self._wanted = _SMALLEST

    def keep(self, array: Array) -> Shared:
        """Return the values of an array, in shared memory."""
        start = -(-self._used // _ALIGNMENT) * _ALIGNMENT
        if self._piece is None or start + array.nbytes > self._piece.bytes.nbytes:
            self._wanted = max(self._wanted, array.nbytes + _ALIGNMENT, 2 * self._used)
            self._piece, start = self._another(), _ALIGNMENT
            self._filled.add(self._piece)
        found = Shared(self._piece, start, array.shape, array.dtype)
        assert found.host is not None
        found.host[...] = array
        self._used = start + array.nbytes
        return found

    def send(self, nodes: Sequence[Node]) -> None:
        """Say that the other process gets values, and then frees the pieces that are read."""
        self._sent |= {node.piece for node in in_order(nodes) if isinstance(node, Shared)}

    def close(self) -> None:
        """Begin another piece for what is kept next; those of which nothing is sent are free."""
        for piece in self._filled - self._sent:
            piece.free()
        self._filled, self._sent = set(), set()
        self._piece = None
        self._used = 0

    def _another(self) -> Piece:
        for piece in self._pieces:
            if piece.is_free and piece.bytes.nbytes >= self._wanted:
                piece.take()
                return piece
        self._pieces = [each for each in self._pieces if not each.is_free]
        # As torch's own collation makes memory for a batch in a worker.
        made: Any = torch.UntypedStorage
        storage = made._new_shared(self._wanted, device="cpu")  # noqa: SLF001
        memory = torch.empty(0, dtype=torch.uint8).set_(storage)
        piece = Piece(uuid.uuid4().hex, memory)
        piece.take()
        self._pieces.append(piece)
        return piece


class _Pieces:
    """The pieces of other processes that this one has seen."""

    def __init__(self) -> None:
        self._known: dict[str, Piece] = {}
        self.after_fork()
        rearm_after_fork(self)

    def after_fork(self) -> None:
        """Make a lock that no thread of the parent holds."""
        self._lock = threading.Lock()

    def attach(self, name: str, memory: torch.Tensor | None) -> Piece:
        """Return a piece by its name; the first time it comes with its memory."""
        with self._lock:
            if memory is not None:
                self._known[name] = Piece(name, memory)
            return self._known[name]

    def forget(self, names: Iterable[str]) -> None:
        """Forget pieces of which nothing will be sent any more."""
        with self._lock:
            for name in names:
                self._known.pop(name, None)


PIECES: Final = _Pieces()


def _attached(name: str, memory: torch.Tensor | None) -> Piece:
    return PIECES.attach(name, memory)
