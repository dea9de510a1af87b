"""Devices, factories and packages that do not go together, or are not there."""

from __future__ import annotations

from devicecore.errors.base import DeviceCoreError


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

    @property
    def why(self) -> str:
        """What is wrong, in one line."""
        return f"the package {self.module!r} is not installed"

    @property
    def fix(self) -> str:
        """What to do."""
        return f"pip install 'devicecore[{self.extra}]'"

    def _parts(self) -> tuple[str, ...]:
        return (self.why, "everything that does not need it still works", self.fix)


class BrokenPackageError(DeviceCoreError, ImportError):
    """An optional package is installed and cannot be used, for a reason that is known.

    Attributes:
        module: The package.
        state: ``shadowed`` where a file of the program has its name, else ``broken``.
        reason: What is wrong.
        fix: What to do.
    """

    def __init__(self, module: str, state: str, reason: str, fix: str) -> None:
        self.module = module
        self.state = state
        self.reason = reason
        self.fix = fix
        super().__init__(module, state, reason, fix)

    @property
    def why(self) -> str:
        """What is wrong, and with which package, in one line."""
        return f"the package {self.module!r} cannot be used: {self.reason}"

    def _parts(self) -> tuple[str, ...]:
        return (self.why, "everything that does not need it still works", self.fix)
