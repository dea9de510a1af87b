"""Runs programs by `devicecore run`, and by Python itself."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

PROGRAM = Path("program.py")
# What Python runs a module with stands in its tracebacks too.
ADDRESS = re.compile("0x[0-9a-f]+")
FRAMES_OF_RUNPY = re.compile(r' {2}File "<frozen runpy>".*\n')


def run(words: list[str], folder: Path, given: str = "", **environment: str) -> Any:
    done = subprocess.run(
        [sys.executable, *words],
        cwd=folder,
        input=given,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), **environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    return done.returncode, done.stdout, ADDRESS.sub("0x", done.stderr)


def ours(words: list[str], folder: Path, given: str = "", **environment: str) -> Any:
    return run(["-m", "devicecore", "run", *words], folder, given, **environment)


def same(words: list[str], folder: Path, given: str = "", **environment: str) -> Any:
    """Run a program in both ways, and return what it does in both."""
    code, out, err = run(words, folder, given, **environment)
    err = FRAMES_OF_RUNPY.sub("", err).replace(f"{sys.executable}: ", "devicecore: ")
    assert ours(words, folder, given, **environment) == (code, out, err)
    return code, out, err
