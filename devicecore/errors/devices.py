"""A device cannot do what was asked of it; another one may."""

from __future__ import annotations

from typing import TYPE_CHECKING

from devicecore.errors.base import DeviceCoreError, listing

if TYPE_CHECKING:
    from collections.abc import Mapping


class DeviceError(DeviceCoreError, RuntimeError):
    """A device cannot do what was asked; only then may a policy try the next device."""


class NoKernelError(DeviceError, LookupError):
    """No kernel of an operation fits a device and its arguments.

    Attributes:
        op: The operation.
        device: The device that was asked.
        refused: For each kernel that exists, why it was not taken.
        fix: What to do, where a package keeps its kernels from being there.
    """

    def __init__(
        self, op: str, device: str, refused: Mapping[str, str] | None = None, fix: str = ""
    ) -> None:
        self.op = op
        self.device = device
        self.refused: dict[str, str] = dict(refused or {})
        self.fix = fix
        super().__init__(op, device, self.refused, fix)

    def _parts(self) -> tuple[str, ...]:
        reasons = listing(f"{kernel}: {why}" for kernel, why in self.refused.items())
        return (
            f"no kernel of {self.op!r} fits {self.device}",
            f"refused: {reasons}" if self.refused else "nobody registered one under that name",
            self.fix or "register one with @kernel, or ask a device that has it",
        )


class RefusedCallError(NoKernelError):
    """A call was refused before any kernel ran, so that another device may try whatever it is.

    A `NoKernelError` that a kernel itself raises is none of these.

    Attributes:
        op: The operation.
        device: The device that was asked.
        refused: For each kernel that exists, why it was not taken.
        fix: What to do, where a package keeps its kernels from being there.
    """


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
