"""Tells devicecore's own calls of a patched function from the program's."""

from __future__ import annotations

import os
import sys
from pathlib import Path

# Kept here: a plan may name this function, too.
from sys import _getframe as frame_at
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from types import FrameType

    from devicecore.migrate.plan.keys import Segments

_PACKAGES: Final = sys.stdlib_module_names | {"PIL", "cv2", "numpy", "torch"}

# By files, and not by names: an example in a docstring runs with the names of its module, and yet
# is a program. In a frozen program files have names of their own, and so has this one.
_FOLDER: Final = f"{Path(frame_at(0).f_code.co_filename).parents[2]}{os.sep}"

# They call functions in the name of the program, perhaps the wrappers of another migrator.
_CALL_FOR_PROGRAMS: Final = frozenset(
    _FOLDER + name.replace("/", os.sep) + ".py"
    for name in (
        "cli/program",
        "migrate/patching/blocks",
        "migrate/patching/patch_stack",
        "migrate/recording/current",
        "migrate/recording/lazy_array",
        "migrate/recording/opencv_random",
        "migrate/loader/sample_recorder",
        "migrate/calls/attempt",
        "migrate/calls/call_site",
        "migrate/strategies/module_strategy",
        "migrate/calls/strategy",
        "migrate/patching/wrapper",
        "scope/decorator",
    )
)

__all__ = ["frame_at", "is_own_call", "may_be_own_call"]


def may_be_own_call(frame: Segments) -> bool:
    """Return whether modules of devicecore may call a function of a module themselves.

    Args:
        frame: Its name in paths. Programs' functions and methods are called for them only.
    """
    return len(frame) == 1 and frame[0].partition(":")[0].partition(".")[0] in _PACKAGES


def is_own_call(caller: FrameType) -> bool:
    """Return whether code of devicecore makes a call for itself.

    Args:
        caller: The frame that calls.
    """
    name = caller.f_code.co_filename
    return name.startswith(_FOLDER) and name not in _CALL_FOR_PROGRAMS
