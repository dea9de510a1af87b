"""`Arena`: shared memory in which a worker sends arrays, reused for each batch.

New memory costs more than the copy into it, and each block of shared memory takes a file
descriptor. So a worker fills a piece for each batch, the other process says in the piece itself
that it has read it, and then the worker fills it anew.
"""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any, Final

import torch

from devicecore.migrate.loader.shm_blocks import ShmBlock
from devicecore.migrate.recording.nodes import Node, find_sources, make_source

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np

    from devicecore.migrate.loader.shm_blocks import Loan

    Array = np.ndarray[Any, Any]
    Shape = tuple[int, ...]

# Where arrays begin; the first of these has the sign that a piece is in use.
_ALIGNMENT: Final = 256
_SMALLEST: Final = 1 << 20


class ArenaArray(Node):
    """An array in a shared memory block.

    Attributes:
        block: The piece.
    """

    __slots__ = ("_start", "block")

    def __init__(self, block: ShmBlock, start: int, shape: Shape, dtype: np.dtype[Any]) -> None:
        array = block.view(start, shape, dtype)
        super().__init__(make_source(array).expr, (), array)
        self.block: Final = block
        self._start = start

    def __reduce__(self) -> Any:
        return Borrowed, (self.block, self._start, self.expr.shape, self.expr.dtype)


class Borrowed(Node):
    """An array of an arena in the process that receives it.

    Attributes:
        loan: The piece.
    """

    __slots__ = ("loan",)

    def __init__(self, loan: Loan, start: int, shape: Shape, dtype: np.dtype[Any]) -> None:
        array = loan.block.view(start, shape, dtype)
        super().__init__(make_source(array).expr, (), array)
        self.loan: Final = loan


class Arena:
    """Copies arrays into shared memory blocks.

    Args:
        owner: Whose these are, for the process that they are sent to.
    """

    def __init__(self, owner: str) -> None:
        self._owner = owner
        self._blocks: list[ShmBlock] = []
        self._filled: set[ShmBlock] = set()
        self._sent: set[ShmBlock] = set()
        self._block: ShmBlock | None = None
        self._used = 0
        self._wanted = _SMALLEST

    def keep(self, array: Array) -> ArenaArray:
        """Return the values of an array, in shared memory."""
        start = -(-self._used // _ALIGNMENT) * _ALIGNMENT
        if self._block is None or start + array.nbytes > self._block.bytes.nbytes:
            self._wanted = max(self._wanted, array.nbytes + _ALIGNMENT, 2 * self._used)
            self._block, start = self._another(), _ALIGNMENT
            self._filled.add(self._block)
        found = ArenaArray(self._block, start, array.shape, array.dtype)
        assert found.host is not None
        found.host[...] = array
        self._used = start + array.nbytes
        return found

    def send(self, nodes: Sequence[Node]) -> None:
        """Say that the other process gets values, and then frees the pieces that are read."""
        self._sent |= {node.block for node in find_sources(nodes) if isinstance(node, ArenaArray)}

    def close(self) -> None:
        """Begin another piece for what is kept next; those of which nothing is sent are free."""
        self._begin(self._filled - self._sent)

    def drop(self) -> None:
        """Begin another piece, as nothing of a batch will be sent."""
        self._begin(self._filled)

    def _begin(self, unused: set[ShmBlock]) -> None:
        for block in unused:
            block.free()
        self._filled, self._sent = set(), set()
        self._block = None
        self._used = 0

    def _another(self) -> ShmBlock:
        for block in self._blocks:
            if block.is_free and block.bytes.nbytes >= self._wanted:
                block.take()
                return block
        self._blocks = [each for each in self._blocks if not each.is_free]
        # As torch's own collation makes memory for a batch in a worker.
        made: Any = torch.UntypedStorage
        storage = made._new_shared(self._wanted, device="cpu")  # noqa: SLF001
        memory = torch.empty(0, dtype=torch.uint8).set_(storage)
        block = ShmBlock(self._owner, uuid.uuid4().hex, memory)
        block.take()
        self._blocks.append(block)
        return block
