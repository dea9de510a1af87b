"""What all benchmarks share: statements timed in bulk, and processes timed from start to end."""

from __future__ import annotations

import os
import subprocess
import sys
from itertools import repeat
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).parents[1]
CALLS = 2000
# A busy neighbour slows this machine for a moment: a second is long enough to see past it.
SECONDS = 1.0
PROCESS_ROUNDS = 11

# Where it is set, every process would compile every module anew.
_NO_BYTECODE = "PYTHONDONTWRITEBYTECODE"

LOOP = """
def loop():
    for _ in repeat(None, calls):
        {statement}
"""


@pytest.fixture
def statement(benchmark: Any) -> Callable[..., None]:
    """Return a function that times a statement, many in a row so that the clock does not count.

    The time of one round is that of ``calls`` statements; `report.py` divides.
    """

    def time(code: str, /, **names: Any) -> None:
        space = {"repeat": repeat, "calls": CALLS, **names}
        exec(LOOP.format(statement=code), space)  # noqa: S102 - as timeit does
        benchmark.extra_info["calls"] = CALLS
        started = perf_counter()
        space["loop"]()
        rounds = int(SECONDS / (perf_counter() - started))
        benchmark.pedantic(space["loop"], rounds=min(max(rounds, 20), 500), warmup_rounds=3)

    return time


@pytest.fixture
def process(benchmark: Any, tmp_path: Path) -> Callable[..., str]:
    """Return a function that times a Python process from its start to its end."""
    environment = {
        **{name: value for name, value in os.environ.items() if name != _NO_BYTECODE},
        "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "factories")]),
        "DEVICECORE_CACHE_DIR": str(tmp_path),
    }

    def run(*arguments: str) -> str:
        done = subprocess.run(
            [sys.executable, *arguments],
            env=environment,
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout

    def time(*arguments: str) -> str:
        said: str = benchmark.pedantic(run, arguments, rounds=PROCESS_ROUNDS, warmup_rounds=1)
        return said

    return time
