"""Warns at the program's own line, however many calls of devicecore are below it."""

from __future__ import annotations

import contextlib
import importlib
import os
import sys
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from types import FrameType

_FOLDER: Final = f"{Path(__file__).parents[2]}{os.sep}"

_BETWEEN: Final = (contextlib.__file__, importlib.__file__)


def warn(text: str) -> None:
    """Warn of *text*, a `RuntimeWarning`, at the line of the program that has called devicecore."""
    frame: FrameType | None = sys._getframe(1)  # noqa: SLF001 - as the warnings module does
    level = 2
    while frame is not None and not _is_of_program(frame):
        frame = frame.f_back
        # Those of the import system are not counted.
        level += frame is not None and not _is_of_imports(frame)
    warnings.warn(text, RuntimeWarning, stacklevel=level)


def _is_of_program(frame: FrameType) -> bool:
    name = frame.f_code.co_filename
    is_between = name in _BETWEEN or _is_of_imports(frame)
    return not (name.startswith(_FOLDER) or is_between)


def _is_of_imports(frame: FrameType) -> bool:
    name = frame.f_code.co_filename
    return "importlib" in name and "_bootstrap" in name
