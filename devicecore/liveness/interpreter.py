"""The Python that children are started with, where there is one."""

from __future__ import annotations

import re
import sys
from pathlib import Path

# QGIS, uwsgi, Blender and others embed Python, and call themselves its executable: started again,
# they would open a second window. Nor is `pythonservice.exe`, or `python3-config`, an interpreter.
_PYTHON = re.compile(
    r"(python|pypy|graalpy)w?[\d.]*(t|d|td|w|_d)?(-(c|dbg|intel64|arm64))?(\.exe)?", re.IGNORECASE
)


def interpreter() -> str | None:
    """Return the path of the interpreter that runs this process, to start another one with.

    None in a frozen program and in a program that embeds Python.
    """
    path = sys.executable
    if getattr(sys, "frozen", False) or not path or not _PYTHON.fullmatch(Path(path).name):
        return None
    return path
