"""The error of a command that was called in a way it does not take."""

from __future__ import annotations

from devicecore.errors import DeviceCoreError


class UsageError(DeviceCoreError, ValueError):
    """A command was called in a way that it does not take."""
