"""Calls of devicecore's own to functions that a plan names: they are not the program's."""

from __future__ import annotations

import sys

# Kept here: a plan may name this function, too.
from sys import _getframe as frame_at
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from types import FrameType

    from devicecore.migrate.keys import Segments

_PACKAGES: Final = sys.stdlib_module_names | {"PIL", "cv2", "numpy", "torch"}

# They call functions in the name of the program, perhaps the wrappers of another migrator.
_CALL_FOR_PROGRAMS: Final = frozenset(
    {
        "devicecore.cli.program",
        "devicecore.migrate.blocks",
        "devicecore.migrate.chains",
        "devicecore.migrate.lazy.current",
        "devicecore.migrate.lazy.device_array",
        "devicecore.migrate.lazy.drawing",
        "devicecore.migrate.lifted.lifting",
        "devicecore.migrate.site",
        "devicecore.migrate.strategies.modules",
        "devicecore.migrate.strategy",
        "devicecore.migrate.wrapper",
        "devicecore.scope.decorating",
    }
)

__all__ = ["frame_at", "is_of_ours", "may_be_ours"]


def may_be_ours(frame: Segments) -> bool:
    """Return whether modules of devicecore may call a function of a module themselves.

    Args:
        frame: Its name in paths. Programs' functions and methods are called for them only.
    """
    return len(frame) == 1 and frame[0].partition(":")[0].partition(".")[0] in _PACKAGES


def is_of_ours(caller: FrameType) -> bool:
    """Return whether code of devicecore makes a call for itself.

    Args:
        caller: The frame that calls.
    """
    name = caller.f_globals.get("__name__")
    if type(name) is not str or not name.startswith("devicecore."):
        return False
    return name not in _CALL_FOR_PROGRAMS
