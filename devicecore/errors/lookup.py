"""What was asked for does not exist, or cannot be asked for so."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING

from devicecore.errors.base import DeviceCoreError, listing, shorten

if TYPE_CHECKING:
    from collections.abc import Iterable

_NEAR = 0.7  # so that no type of three letters is near another, as XPU and GPU are


class InvalidDeviceNameError(DeviceCoreError, ValueError):
    """A text is not a device name.

    Attributes:
        text: What was given.
        position: Where in *text* it goes wrong, counted from 0.
        reason: Why.
        suggestion: A name that may have been meant, or an empty string.
        wanted: What was asked for, if not a device: a ``"type"``.
    """

    def __init__(
        self, text: str, position: int, reason: str, suggestion: str = "", wanted: str = "device"
    ) -> None:
        self.text = text
        self.position = position
        self.reason = reason
        self.suggestion = suggestion
        self.wanted = wanted
        super().__init__(text, position, reason, suggestion, wanted)

    def _parts(self) -> tuple[str, ...]:
        is_type = self.wanted == "type"
        what = "device type" if is_type else "device name"
        devices = "'cuda:1', 'GPU:0' or '/job:worker/replica:0/task:3/device:CUDA:1'"
        return (
            f"invalid {what} {shorten(self.text, 80)!r}: {self.reason}, at {self.position}",
            "types are words, such as 'CUDA', 'OPENVINO' or 'CPU'"
            if is_type
            else f"names look like {devices}",
            f"did you mean {self.suggestion!r}?" if self.suggestion else "",
        )


class IncompatibleNamesError(DeviceCoreError, ValueError):
    """Two device names set the same part to different values.

    Attributes:
        part: The part: ``job``, ``replica``, ``task``, ``device_type`` or ``index``.
        left: Its value in the first name.
        right: Its value in the second name.
    """

    def __init__(self, part: str, left: str | int, right: str | int) -> None:
        self.part = part
        self.left = left
        self.right = right
        super().__init__(part, left, right)

    def _parts(self) -> tuple[str, ...]:
        return (
            f"the names disagree on the {self.part}: {self.left!r} and {self.right!r}",
            "only parts that are unset on one side can be merged",
            "merge with conflicts='soft' or 'override' to let type and index differ",
        )


class UnknownDeviceError(DeviceCoreError, LookupError):
    """No device answers to the name that was asked for.

    Attributes:
        name: What was asked for.
        known: The names that would have worked.
        why: Why a device of that type is missing, if that is known.
    """

    def __init__(self, name: str, known: Iterable[str] = (), why: str = "") -> None:
        self.name = name
        self.known: tuple[str, ...] = tuple(known)
        self.why = why
        super().__init__(name, self.known, why)

    def _parts(self) -> tuple[str, ...]:
        near = _near_device(self.name, self.known)
        return (
            f"no device is called {self.name!r}" + (f" ({self.why})" if self.why else ""),
            f"there is {listing(self.known)}",
            f"did you mean {near!r}?" if near else "run `devicecore devices` for the reasons",
        )


def _near_device(name: str, known: Iterable[str]) -> str:
    """Return which of *known* looks like *name*, its type first: ``GPU`` is not near ``CPU``."""
    asked = name.rpartition("/device:")[2].casefold()
    short = {each.rpartition("/device:")[2].casefold(): each for each in known}
    types = {folded.partition(":")[0] for folded in short}
    near_types = get_close_matches(asked.partition(":")[0], types, n=3, cutoff=_NEAR)
    folded = [each for each in short if each.partition(":")[0] in near_types]
    near = get_close_matches(asked, folded, n=1, cutoff=_NEAR)
    return short[near[0]].rpartition("/device:")[2] if near else ""


class UnknownResourceError(DeviceCoreError, LookupError):
    """A device keeps nothing under that name.

    Attributes:
        container: The container that was searched.
        name: What was asked for.
    """

    def __init__(self, container: str, name: str) -> None:
        self.container = container
        self.name = name
        super().__init__(container, name)

    def _parts(self) -> tuple[str, ...]:
        return (f"there is no {self.name!r} in {self.container!r}",)


class ConfigurationError(DeviceCoreError, ValueError):
    """A variable of the environment has a value that it cannot have.

    Attributes:
        variable: The variable's name.
        value: Its value.
        possible: What it can be.
    """

    def __init__(self, variable: str, value: str, possible: str) -> None:
        self.variable = variable
        self.value = value
        self.possible = possible
        super().__init__(variable, value, possible)

    def _parts(self) -> tuple[str, ...]:
        return (
            f"{self.variable} is {shorten(self.value, 80)!r}",
            f"it can be {self.possible}",
            "set it anew, or unset it",
        )


class PlanError(DeviceCoreError, ValueError):
    """A plan of a migration cannot be read, or asks for what is not there.

    Attributes:
        key: The key that it is about; empty where it is about none.
        reason: What is wrong.
        fix: What would be right.
        plan: The plan's file, or a short description of it; empty where it is not known.
        line: The line in that file, counted from 1; None where there is none.
    """

    def __init__(
        self, key: str, reason: str, fix: str = "", plan: str = "", line: int | None = None
    ) -> None:
        self.key = key
        self.reason = reason
        self.fix = fix
        self.plan = plan
        self.line = line
        super().__init__(key, reason, fix, plan, line)

    def at(self, plan: str, line: int | None, key: str = "") -> PlanError:
        """Return this error with its place, as far as it has none yet."""
        return PlanError(
            self.key or key,
            self.reason,
            self.fix,
            self.plan or plan,
            line if self.line is None else self.line,
        )

    def _parts(self) -> tuple[str, ...]:
        line = "" if self.line is None else f"line {self.line}"
        key = repr(shorten(self.key, 80)) if self.key else ""
        where = ", ".join(part for part in (self.plan, line, key) if part)
        return (f"{where}: {self.reason}" if where else self.reason, self.fix)
