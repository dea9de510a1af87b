"""Models, scopes, structures and fallbacks that cannot be had."""

from __future__ import annotations

from devicecore.errors.base import DeviceCoreError


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


class ScopeError(DeviceCoreError, RuntimeError):
    """A device scope cannot be entered or left here: work would land on another device."""


class TransferError(DeviceCoreError, TypeError):
    """A value cannot be moved or converted; nothing of what was given has changed.

    Attributes:
        path: Where it is in what was given, such as ``data['items'][3].x``.
        reason: Why it cannot be.
        fix: What to do.
    """

    def __init__(self, path: str, reason: str, fix: str = "") -> None:
        self.path = path
        self.reason = reason
        self.fix = fix
        super().__init__(path, reason, fix)

    def _parts(self) -> tuple[str, ...]:
        return (f"{self.path} cannot be moved: {self.reason}", self.fix)
