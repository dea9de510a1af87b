"""Every error that devicecore raises.

Each one is also the builtin it is a kind of, keeps its facts as attributes, survives pickling, and
reads in three parts: what was wrong; what is possible; what to do.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


class DeviceCoreError(Exception):
    """Base of all errors of devicecore."""

    def _parts(self) -> tuple[str, ...]:
        """Return what was wrong, what is possible and what to do; empty parts are left out."""
        return tuple(str(argument) for argument in self.args)

    def __str__(self) -> str:
        return "; ".join(part for part in self._parts() if part)


def shorten(text: str, width: int) -> str:
    """Return *text*, cut to *width* characters with an ellipsis where it is longer."""
    return text if len(text) <= width else text[: width - 1] + "…"


def _listing(names: Iterable[str], *, most: int = 12) -> str:
    """Return *names* for a message, cut after *most*: a cluster has thousands."""
    shown = list(names)
    rest = f" and {len(shown) - most} more" if len(shown) > most else ""
    return ", ".join(shown[:most]) + rest if shown else "none"


class InvalidDeviceNameError(DeviceCoreError, ValueError):
    """A text is not a device name.

    Attributes:
        text: What was given.
        position: Where in *text* it goes wrong, counted from 0.
        reason: Why.
        suggestion: A name that may have been meant, or an empty string.
    """

    def __init__(self, text: str, position: int, reason: str, suggestion: str = "") -> None:
        self.text = text
        self.position = position
        self.reason = reason
        self.suggestion = suggestion
        super().__init__(text, position, reason, suggestion)

    def _parts(self) -> tuple[str, ...]:
        return (
            f"{shorten(self.text, 80)!r} is no device name: {self.reason}, at {self.position}",
            "names look like 'cuda:1', 'GPU:0' or '/job:worker/replica:0/task:3/device:CUDA:1'",
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
        from difflib import get_close_matches

        short = {known.rpartition("/device:")[2]: known for known in self.known}
        near = get_close_matches(self.name.rpartition("/device:")[2].upper(), short, n=1)
        return (
            f"no device is called {self.name!r}" + (f" ({self.why})" if self.why else ""),
            f"there is {_listing(self.known)}",
            f"did you mean {near[0]!r}?" if near else "run `devicecore devices` for the reasons",
        )


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


class DeviceConflictError(DeviceCoreError, ValueError):
    """A device cannot be added or removed as asked; nothing was changed.

    Attributes:
        name: The name of the device that is in the way.
        reason: Why it is.
    """

    def __init__(self, name: str, reason: str) -> None:
        self.name = name
        self.reason = reason
        super().__init__(name, reason)

    def _parts(self) -> tuple[str, ...]:
        return (
            f"cannot change the devices because of {self.name!r}: {self.reason}",
            "nothing was added or removed",
        )


class HostCpuError(DeviceConflictError):
    """The host CPU cannot be removed while other devices exist.

    Attributes:
        name: The name of the host CPU.
        reason: Why it has to stay.
    """

    def __init__(self, name: str, reason: str = "the host CPU serves the other devices") -> None:
        super().__init__(name, reason)


class RegistrationError(DeviceCoreError, ValueError):
    """A factory or a kernel cannot be registered as asked.

    Attributes:
        name: What was to be registered.
        reason: Why it cannot be.
        fix: What to do.
    """

    def __init__(self, name: str, reason: str, fix: str = "") -> None:
        self.name = name
        self.reason = reason
        self.fix = fix
        super().__init__(name, reason, fix)

    def _parts(self) -> tuple[str, ...]:
        return (f"cannot register {self.name!r}: {self.reason}", self.fix)


class MissingDependencyError(DeviceCoreError, ImportError):
    """An optional package is not installed.

    Attributes:
        module: The module that could not be found.
        extra: The extra of devicecore that brings it.
    """

    def __init__(self, module: str, extra: str) -> None:
        self.module = module
        self.extra = extra
        super().__init__(module, extra)

    def _parts(self) -> tuple[str, ...]:
        return (
            f"the package {self.module!r} is not installed",
            "everything that does not need it still works",
            f"pip install 'devicecore[{self.extra}]'",
        )


class ModelError(DeviceCoreError, ValueError):
    """A model, or what was given to it, cannot be used.

    Attributes:
        path: The model's file, or a short description of it.
        reason: Why it cannot be used.
        fix: What to do.
    """

    def __init__(self, path: str, reason: str, fix: str = "") -> None:
        self.path = path
        self.reason = reason
        self.fix = fix
        super().__init__(path, reason, fix)

    def _parts(self) -> tuple[str, ...]:
        return (f"the model {self.path!r} cannot be used: {self.reason}", self.fix)


class EngineCacheError(DeviceCoreError, OSError):
    """Engines cannot be kept in the folder that they should be kept in, or not safely.

    Attributes:
        folder: The folder.
        reason: What is wrong with it.
    """

    def __init__(self, folder: str, reason: str) -> None:
        self.folder = folder
        self.reason = reason
        super().__init__(folder, reason)

    def _parts(self) -> tuple[str, ...]:
        return (
            f"the folder of compiled engines, {self.folder}, {self.reason}",
            "models run without it, and build their engines at each start",
            "set DEVICECORE_CACHE_DIR to a folder of your own, or open models with cache='none'",
        )


class FallbackForbiddenError(DeviceCoreError, RuntimeError):
    """Something would have moved to another device, and the ledger does not allow it.

    Attributes:
        op: What would have moved.
        source: The device that was wanted.
        target: The device that it would have moved to.
        reason: Why it would have moved.
        budget: How many moves were allowed in all.
    """

    def __init__(self, op: str, source: str, target: str, reason: str, budget: int) -> None:
        self.op = op
        self.source = source
        self.target = target
        self.reason = reason
        self.budget = budget
        super().__init__(op, source, target, reason, budget)

    def _parts(self) -> tuple[str, ...]:
        allowed = f"{self.budget} moves are allowed" if self.budget else "no move is allowed"
        return (
            f"{self.op} would move from {self.source} to {self.target}: {self.reason}",
            allowed,
            "mend the cause, or raise the budget of the ledger",
        )


class DeviceError(DeviceCoreError, RuntimeError):
    """A device cannot do what was asked; only then may a policy try the next device."""


class NoKernelError(DeviceError, LookupError):
    """No kernel of an operation fits a device and its arguments.

    Attributes:
        op: The operation.
        device: The device that was asked.
        refused: For each kernel that exists, why it was not taken.
    """

    def __init__(self, op: str, device: str, refused: Mapping[str, str] | None = None) -> None:
        self.op = op
        self.device = device
        self.refused: dict[str, str] = dict(refused or {})
        super().__init__(op, device, self.refused)

    def _parts(self) -> tuple[str, ...]:
        reasons = _listing(f"{kernel}: {why}" for kernel, why in self.refused.items())
        return (
            f"no kernel of {self.op!r} fits {self.device}",
            f"refused: {reasons}" if self.refused else "nobody registered one under that name",
            "register one with @kernel, or ask a device that has it",
        )


class RefusedCallError(NoKernelError):
    """A call was refused before any kernel ran, so that another device may try whatever it is.

    A `NoKernelError` that a kernel itself raises is none of these.

    Attributes:
        op: The operation.
        device: The device that was asked.
        refused: For each kernel that exists, why it was not taken.
    """


class ScopeError(DeviceCoreError, RuntimeError):
    """A device scope cannot be entered or left here: work would land on another device."""


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
            f"{self.variable} is {self.value!r}",
            f"it can be {self.possible}",
            "set it anew, or unset it",
        )


class NotLiveError(DeviceError):
    """A device type, provider or framework does not work on this machine.

    Attributes:
        what: What was asked for.
        state: Its state, such as ``missing`` or ``broken``.
        reason: Why.
        fix: What to do.
    """

    def __init__(self, what: str, state: str, reason: str = "", fix: str = "") -> None:
        self.what = what
        self.state = state
        self.reason = reason
        self.fix = fix
        super().__init__(what, state, reason, fix)

    def _parts(self) -> tuple[str, ...]:
        return (f"{self.what} is {self.state}", self.reason, self.fix)


class OutOfMemoryError(DeviceError, MemoryError):
    """A device has too little memory left.

    Attributes:
        device: The device.
        detail: What the framework said.
    """

    def __init__(self, device: str, detail: str = "") -> None:
        self.device = device
        self.detail = detail
        super().__init__(device, detail)

    def _parts(self) -> tuple[str, ...]:
        return (
            f"{self.device} is out of memory",
            self.detail,
            "free memory, send smaller batches, or use a policy that tries the next device",
        )


class DeviceGoneError(DeviceError):
    """A device was closed, removed, lost, or opened before this process was forked.

    Attributes:
        device: The device.
        reason: What happened to it.
    """

    def __init__(self, device: str, reason: str) -> None:
        self.device = device
        self.reason = reason
        super().__init__(device, reason)

    def _parts(self) -> tuple[str, ...]:
        return (
            f"{self.device} is gone: {self.reason}",
            "",
            "look it up again in a manager that holds a live one",
        )
