"""A call in a child process: it may hang or crash, and the memory that it takes is its own."""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from devicecore.cli.temporary import temporary_folder
from devicecore.errors import DeviceCoreError
from devicecore.liveness.interpreter import interpreter

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

# The child finds everything where the parent does, whatever the parent did to its path.
_BOOT = """\
import pickle, sys
sys.path[:] = pickle.load(sys.stdin.buffer)
from devicecore.cli.model_bench.children import answer
answer(*pickle.load(sys.stdin.buffer))
"""
_ANSWER, _STAGE, _NOISE = "answer", "stage", "noise"
_LOOK_S = 0.1


class ChildError(DeviceCoreError, RuntimeError):
    """A child process ended without an answer, or had to be stopped."""


def call_in_child(
    function: Callable[..., Any],
    *arguments: object,
    timeout_s: float,
    show: Callable[[str], None],
) -> Any:
    """Return what *function* returns in a process of its own.

    Args:
        function: Of a module, not of another function. Its first argument is a function to be
            called with a few words at the start of each step.
        arguments: Its other arguments; they pickle.
        timeout_s: How long it may take, in seconds.
        show: Called with the words of the step that it is at.

    Raises:
        ChildError: It hung, crashed, or raised an error that is none of ours; or this program is
            frozen, and has no interpreter to start.
        TemporaryFolderError: There is no place for its answer.
        DeviceCoreError: *function* raised it.
    """
    if interpreter() is None:
        msg = "a frozen program has no Python to start for it"
        raise ChildError(msg)
    with temporary_folder() as folder:
        code = _run(pickle.dumps((folder, function, arguments)), folder, timeout_s, show)
        try:
            # What was written counts even if the process then died: runtimes crash on their way.
            outcome = pickle.loads((folder / _ANSWER).read_bytes())  # noqa: S301 - our own child's
        except FileNotFoundError:
            raise ChildError(_how_it_ended(code, folder, timeout_s)) from None
        except Exception as error:
            # An error of a plug-in may be of a class that does not pickle.
            msg = f"its answer cannot be read: {error}"
            raise ChildError(msg) from error
    if isinstance(outcome, DeviceCoreError):
        raise outcome
    return outcome


def answer(folder: Path, function: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    """Write what *function* returns or raises into *folder*, and end this process, the child."""

    def stage(words: str) -> None:
        with suppress(OSError):  # no room: the words are for a person who waits, and not needed
            (folder / _STAGE).write_text(words, encoding="utf-8")

    try:
        outcome = function(stage, *arguments)
    except DeviceCoreError as error:
        outcome = error
    except Exception as error:  # noqa: BLE001 - runtimes and plug-ins may raise anything
        outcome = ChildError(f"{type(error).__name__}: {error}")
    part = folder / "part"
    part.write_bytes(pickle.dumps(outcome))
    part.replace(folder / _ANSWER)
    os._exit(0)  # a runtime's own clean-up may take seconds, or crash


def _run(call: bytes, folder: Path, timeout_s: float, show: Callable[[str], None]) -> int | None:
    """Return the child's exit code, or None if it had to be stopped."""
    with (folder / _NOISE).open("wb") as noise:
        child = subprocess.Popen(  # noqa: S603 - our own interpreter with our own text
            [sys.executable, "-P", "-c", _BOOT],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=noise,
        )
    end = time.monotonic() + timeout_s
    try:
        assert child.stdin is not None
        with suppress(BrokenPipeError), child.stdin as pipe:  # it has died already
            pipe.write(pickle.dumps(sys.path) + call)
        while time.monotonic() < end:
            show(_read(folder / _STAGE))
            try:
                return child.wait(_LOOK_S)
            except subprocess.TimeoutExpired:
                continue
    finally:
        child.kill()
        child.wait()
    return None


def _how_it_ended(code: int | None, folder: Path, timeout_s: float) -> str:
    stage = _read(folder / _STAGE) or "starting"
    if code is None:
        return f"it took longer than {timeout_s:g} s, and was stopped while {stage}"
    if code < 0:
        name = signal.Signals(-code).name if -code in set(signal.Signals) else f"signal {-code}"
        memory = ", perhaps for want of memory" if name == "SIGKILL" else ""
        return f"its process was killed by {name} while {stage}{memory}"
    said = (_read(folder / _NOISE).strip().splitlines() or ["it said nothing"])[-1]
    return f"its process ended with exit code {code} while {stage}: {said}"


def _read(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return ""
