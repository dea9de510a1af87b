"""`TransferError`: something in a structure cannot be moved, and where it is."""

from __future__ import annotations

from devicecore.errors import DeviceCoreError


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
