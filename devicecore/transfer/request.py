"""What a caller asks a transfer for, and what every kind of leaf can do with it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from attrs import frozen

if TYPE_CHECKING:
    from collections.abc import Sequence

    from devicecore.transfer.target import Target

Arrays = Literal["leave", "tensors"]
Coalesce = bool | Literal["auto"]


@frozen
class Request:
    """One transfer, as it was asked for.

    Attributes:
        target: Where to.
        non_blocking: Whether copies may be queued.
        coalesce: Whether small leaves share one copy.
        arrays: What becomes of numpy's arrays.
        wait: Whether copies to the host are done when the call returns.
    """

    target: Target
    non_blocking: bool = True
    coalesce: Coalesce = "auto"
    arrays: Arrays = "leave"
    wait: bool = True


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
