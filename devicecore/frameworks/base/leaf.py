"""`LeafKind`: how a transfer moves the arrays of one kind."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar

from devicecore.errors import NotLiveError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from devicecore.transfer.request import Request
    from devicecore.transfer.target import Target


class MoveFailedError(Exception):
    """A leaf could not be moved; the caller knows where it is and says so.

    Attributes:
        position: Which of the leaves that were given.
        cause: What its framework raised.
    """

    def __init__(self, position: int, cause: Exception) -> None:
        self.position = position
        self.cause = cause
        super().__init__(position, cause)


class LeafKind(ABC):
    """A kind of values that hold data on a device.

    Attributes:
        holds_others: Whether they are objects that hold such values themselves.
    """

    holds_others: ClassVar[bool] = False

    @abstractmethod
    def is_elsewhere(self, value: Any, request: Request) -> bool:
        """Return whether *value* has to be moved."""

    @abstractmethod
    def move(self, values: Sequence[Any], request: Request) -> list[Any]:
        """Return *values* on the target, in their order; those that are given stay as they are.

        Raises:
            MoveFailedError: One of them cannot be moved.
        """


class OneByOne(LeafKind):
    """Leaves of which each is moved by itself."""

    @abstractmethod
    def move_one(self, value: Any, request: Request) -> Any:
        """Return *value* on the target."""

    def move(self, values: Sequence[Any], request: Request) -> list[Any]:
        """Return *values* on the target, one after the other."""
        moved = []
        for position, value in enumerate(values):
            try:
                moved.append(self.move_one(value, request))
            except Exception as error:
                raise MoveFailedError(position, error) from error
        return moved


def place_of(target: Target) -> tuple[str, int]:
    """Return the kind of memory, ``"cpu"``, ``"cuda"`` or another, and its index."""
    device = target.device
    if device is None:
        return "nowhere", 0
    kind = "cpu" if target.is_host else device.device_type.lower()
    index = device.parsed_name.index or 0  # of hosts too: JAX and TensorFlow may have several
    return ("cuda" if kind == "rocm" else kind), index


def absent(framework: str, target: Target) -> NotLiveError:
    """Return the error that a framework has no device in whose memory arrays are wanted."""
    fix = "move its tensors to a device that it has"
    return NotLiveError(f"{target.name} for {framework}", "absent", "it has no such device", fix)
