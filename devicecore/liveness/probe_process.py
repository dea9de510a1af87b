"""A child process that probes: what it tells, what it prints, and how it is stopped."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from devicecore.liveness.probe_result import DETAIL_CHARACTERS, ProbesStoppedError

if TYPE_CHECKING:
    from typing import IO, Self

# The child finds everything where the parent does, whatever the parent did to its path; -P, so that
# it imports nothing from the working folder before that.
_BOOT = """\
import sys, json
job = json.loads(sys.stdin.readline())
sys.path[:] = job["path"]
from devicecore.liveness.child import answer
answer(job)
"""
_MOST_LINE_BYTES = 1 << 20
_LONGEST_IMPORT_S = 120.0
_LONGEST_WAIT_S = 86_400.0
_SLICE_S = 0.1
_LAST_WORDS_S = 1.0

# The children and threads that probe right now; one that `stop_probes` has taken out says nothing.
running_probes: set[subprocess.Popen[bytes] | threading.Thread] = set()


class ProbeProcess:
    """A child process that answers one question, and ends with this block and with this process.

    Args:
        job: What it is asked, as plain data.

    Attributes:
        said: What it told, by key; ``report`` is the answer.
        limit_s: How long it was allowed to take in the end, in seconds.
    """

    def __init__(self, job: dict[str, Any]) -> None:
        self._job = json.dumps(job).encode() + b"\n"  # first: where it fails, no child is left
        self.said: dict[str, Any] = {}
        self.limit_s: float = 0.0
        self._import_s = 0.0
        self._importing: tuple[str, float] | None = None
        self._answered = threading.Event()
        self._ended = threading.Event()
        self._started = time.monotonic()
        # A session of its own, so that whatever it started is stopped with it.
        self._child = subprocess.Popen(  # noqa: S603 - our own interpreter with our own text
            [sys.executable, "-P", "-X", "faulthandler", "-c", _BOOT],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        running_probes.add(self._child)
        self._noise = _Noise(self._child.stderr)
        for work in (self._ask, self._listen, self._noise.collect):
            threading.Thread(target=work, name="devicecore-probe-pipe", daemon=True).start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        running_probes.discard(self._child)
        _kill_group(self._child)
        self._child.wait()
        with suppress(OSError):
            if self._child.stdin is not None:
                self._child.stdin.close()
        self._noise.ended.wait(_LAST_WORDS_S)

    @property
    def noise(self) -> str:
        """The first and the last words of its stderr: it may have said gigabytes."""
        return self._noise.text

    @property
    def exit_code(self) -> int:
        """How it ended."""
        return self._child.wait()

    @property
    def importing(self) -> str:
        """The large framework that it is importing right now, or an empty string."""
        return self._importing[0] if self._importing else ""

    def wait(self, timeout_s: float, *, own_timeout: bool) -> bool:
        """Wait until it has answered or ended; return False if it had to be given up.

        Args:
            timeout_s: How long it may take.
            own_timeout: Whether the time that the factory itself states counts instead, and the
                imports of large frameworks do not count.

        Raises:
            InterruptedError: `stop_probes` was called.
        """
        while self._child in running_probes:
            self._answered.wait(_SLICE_S)
            if self._child not in running_probes:
                break
            if self._answered.is_set():
                return True
            if self._child.poll() is not None:
                _kill_group(self._child)  # what it started may hold the pipes
                self._ended.wait(_LAST_WORDS_S)
                return True
            stated_s = checked_timeout(self.said.get("timeout_s")) if own_timeout else None
            self.limit_s = stated_s or timeout_s
            if self._spent_s(without_imports=own_timeout) > self.limit_s:
                return False
        raise ProbesStoppedError

    def _spent_s(self, *, without_imports: bool) -> float:
        now = time.monotonic()
        imports_s = self._import_s + (now - self._importing[1] if self._importing else 0.0)
        return now - self._started - (min(imports_s, _LONGEST_IMPORT_S) if without_imports else 0)

    def _ask(self) -> None:
        # Whoever closes the pipe ends the child, so it stays open.
        with suppress(OSError, ValueError):
            if self._child.stdin is not None:
                self._child.stdin.write(self._job)
                self._child.stdin.flush()

    def _listen(self) -> None:
        with suppress(OSError, ValueError):
            if self._child.stdout is not None:
                with self._child.stdout as stream:
                    while line := stream.readline(_MOST_LINE_BYTES):
                        self._hear(line)
        self._ended.set()

    def _hear(self, line: bytes) -> None:
        try:
            facts = json.loads(line)
            if "at" in facts:
                self._import_began_or_ended(str(facts["importing"]), float(facts["at"]))
            self.said.update(facts)
        except (ValueError, TypeError, KeyError, RecursionError):
            return  # something else printed, before the child took its stdout away
        if "report" in facts:
            self._answered.set()

    def _import_began_or_ended(self, name: str, at: float) -> None:
        if name and not self._importing:
            self._importing = (name, at)
        elif not name and self._importing:
            self._import_s += at - self._importing[1]
            self._importing = None


class _Noise:
    """What a child writes to its stderr: the beginning and the end are kept."""

    def __init__(self, stream: IO[bytes] | None) -> None:
        self._stream = stream
        self._head = self._tail = b""
        self._dropped = 0
        self.ended = threading.Event()

    def collect(self) -> None:
        with suppress(OSError, ValueError):
            if self._stream is not None:
                with self._stream:
                    while chunk := os.read(self._stream.fileno(), 1 << 16):
                        self._keep(chunk)
        self.ended.set()

    def _keep(self, chunk: bytes) -> None:
        room = DETAIL_CHARACTERS // 4 - len(self._head)
        self._head += chunk[:room]
        tail = self._tail + chunk[room:]
        self._tail = tail[-(DETAIL_CHARACTERS // 2) :]
        self._dropped += len(tail) - len(self._tail)

    @property
    def text(self) -> str:
        head, tail = (part.decode("utf-8", "replace") for part in (self._head, self._tail))
        gap = f"\n… {self._dropped:,} bytes are left out …\n" if self._dropped else ""
        return (head + gap + tail).strip()


def checked_timeout(stated: object) -> float | None:
    """Return a time-out in seconds that can be waited for, or None if *stated* is none."""
    if isinstance(stated, bool) or not isinstance(stated, (int, float)) or not stated > 0:
        return None
    return min(stated, _LONGEST_WAIT_S)


def stop_probes() -> None:
    """Stop every probe that runs; who waits for one gets an InterruptedError.

    For a person who has pressed Ctrl-C: the children have sessions of their own, so the terminal
    does not reach them.
    """
    while running_probes:
        with suppress(KeyError):  # it may just have ended
            probe = running_probes.pop()
            if not isinstance(probe, threading.Thread):  # nothing can stop those
                _kill_group(probe)


def _kill_group(child: subprocess.Popen[bytes]) -> None:
    with suppress(OSError):  # it and all it started may be gone already
        if hasattr(os, "killpg"):
            os.killpg(child.pid, signal.SIGKILL)
        else:
            child.kill()
