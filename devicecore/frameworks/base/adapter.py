"""`Adapter`: how one framework's default device is set and put back."""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import suppress
from typing import TYPE_CHECKING, Any, ClassVar

from devicecore.errors import NotLiveError

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from devicecore.device import Device
    from devicecore.names import DeviceName


class Context:
    """A context manager of a framework, which an interrupt may have come into.

    Args:
        context: The context manager, entered once at most.
    """

    __slots__ = ("_context", "_state")

    def __init__(self, context: AbstractContextManager[object]) -> None:
        self._context = context
        self._state = "outside"

    def enter(self) -> None:
        """Enter it."""
        self._state = "between"
        self._context.__enter__()
        self._state = "inside"

    def leave(self) -> None:
        """Leave it, if it was entered."""
        if self._state == "inside":
            self._context.__exit__(None, None, None)
        elif self._state == "between":
            with suppress(Exception):  # of one that has not begun to be entered
                self._context.__exit__(None, None, None)
        self._state = "outside"


class Adapter(ABC):
    """Sets one framework's default device; made when that framework is imported.

    Attributes:
        title: What it sets, for a person.
        frameworks: The frameworks that this is part of: a scope limited to others leaves it alone.
    """

    title: ClassVar[str]
    frameworks: ClassVar[frozenset[str]]

    @abstractmethod
    def place_of(self, device: Device) -> Any:
        """Return the framework's own object for *device*, or None where nothing is to be set.

        Raises:
            NotLiveError: The framework cannot use the device.
        """

    @abstractmethod
    def save(self, place: Any) -> Any:
        """Return what `leave` has to put back once *place* is the default; nothing changes yet.

        So an interrupt never comes between a change and what undoes it.

        Raises:
            ScopeError: Something would run on another device all the same.
        """

    @abstractmethod
    def set(self, place: Any, saved: Any) -> None:
        """Make *place* the default of this thread.

        Args:
            place: The framework's own object for a device.
            saved: What `save` has returned for it, just before.
        """

    @abstractmethod
    def leave(self, saved: Any) -> None:
        """Put back what was there when *saved* was made, whatever was set since.

        Also where an interrupt came before *place* was set, or while it was put back.
        """

    def enter(self, place: Any) -> Any:
        """Make *place* the default of this thread, and return what `leave` has to put back.

        Raises:
            ScopeError: Something would run on another device all the same.
        """
        saved = self.save(place)
        self.set(place, saved)
        return saved

    @abstractmethod
    def join(self, upper: Any, lower: Any) -> Any:
        """Return what puts back *lower*, which leaves before *upper*, when *upper* leaves."""

    def leave_in_child(self, saved: Any) -> None:
        """Put back in a forked child what its parent's scope had set."""
        with suppress(Exception):  # the child starts clean or not at all; it never fails here
            self.leave(saved)

    def knows(self, name: DeviceName) -> bool:
        """Return whether the framework itself has a device that devicecore knows nothing of."""
        del name
        return False

    def torch_name(self, name: DeviceName) -> str | None:
        """Return what torch calls a device that this framework knows, if this is torch."""
        del name
        return None

    def current_index(self, device_type: str) -> int | None:
        """Return which device of a type the framework now takes where no index is given."""
        del device_type
        return None

    def refusal(self, device: Device, reason: str) -> NotLiveError:
        """Return the error that says that the framework cannot use *device*."""
        return NotLiveError(
            f"{device.label} for {self.title}",
            "absent",
            reason,
            "leave it out of frameworks= to let it keep its default",
        )
