"""Run a foreign probe where it can do no harm: in a child process, or at least in a thread.

A probe may raise, hang, print, return nonsense or kill its process. Whatever it does, the caller
gets a `Report` within the time-out.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from attrs import evolve

from devicecore.liveness.report import DETAIL_CHARACTERS, Report, ask, broken, failure
from devicecore.liveness.state import Liveness

if TYPE_CHECKING:
    from collections.abc import Callable

    from devicecore.liveness.report import Prober

# The child finds everything where the parent does, whatever the parent did to its path.
_BOOT = """\
import json, sys
job = json.load(sys.stdin)
sys.path[:] = job["path"]
from devicecore.liveness.child import answer
answer(job)
"""


# The children that probe right now; one that was taken out by `stop_probes` says nothing.
_running: set[subprocess.Popen[str]] = set()


def ask_in_thread(prober: Callable[[], Prober], framework: str | None, timeout_s: float) -> Report:
    """Ask in a thread of this process: it may hang, but it can still kill the process.

    A thread cannot be stopped, so one that hangs stays behind.
    """
    reports: list[Report] = []

    def work() -> None:
        try:
            reports.append(ask(prober(), framework))
        except BaseException as error:  # noqa: BLE001 - a factory may even try to exit
            reports.append(Report(failure(error)))

    thread = threading.Thread(target=work, name="devicecore-probe", daemon=True)
    thread.start()
    thread.join(timeout_s)
    return reports[0] if reports else Report(_timed_out(timeout_s))


def ask_in_child(target: str, framework: str | None, timeout_s: float) -> Report:
    """Ask the factory that *target* names, as ``"module:Class"``, in a child process."""
    started = time.perf_counter()
    with TemporaryDirectory(prefix="devicecore-", ignore_cleanup_errors=True) as folder:
        result, noise = Path(folder, "report.json"), Path(folder, "stderr")
        job = {
            "path": sys.path,
            "target": target,
            "framework": framework,
            "result": str(result),
        }
        code = _run(json.dumps(job), noise, timeout_s)
        # What was written counts even if the process then died: runtimes crash on their way out.
        report = _read(result)
        said = _end_of(noise)
    if report is None:
        liveness = _timed_out(timeout_s) if code is None else broken(_how_it_ended(code))
        seconds = time.perf_counter() - started
        report = Report(evolve(liveness, detail=said.strip(), seconds=seconds))
    return report


def _run(job: str, noise: Path, timeout_s: float) -> int | None:
    """Return the child's exit code, or None if it had to be stopped."""
    with noise.open("wb") as stderr:
        # A session of its own, so that whatever it started is stopped with it.
        child = subprocess.Popen(  # noqa: S603 - our own interpreter with our own text
            [sys.executable, "-X", "faulthandler", "-c", _BOOT],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=stderr,
            text=True,
            start_new_session=True,
        )
        _running.add(child)
        try:
            child.communicate(job, timeout=timeout_s)
        except subprocess.TimeoutExpired:
            return None
        finally:
            interrupted = child not in _running
            _running.discard(child)
            _kill(child)
    if interrupted:
        msg = "the probe was interrupted"
        raise InterruptedError(msg)
    return child.returncode


def stop_probes() -> None:
    """Stop every probe that runs in a child; who waits for one gets an InterruptedError.

    For a person who has pressed Ctrl-C: the children have sessions of their own, so the terminal
    does not reach them.
    """
    while _running:
        with suppress(KeyError):  # it may just have ended
            _kill_group(_running.pop())


def _kill(child: subprocess.Popen[str]) -> None:
    _kill_group(child)
    child.wait()


def _kill_group(child: subprocess.Popen[str]) -> None:
    with suppress(OSError):  # it and all it started may be gone already
        if hasattr(os, "killpg"):
            os.killpg(child.pid, signal.SIGKILL)
        else:
            child.kill()


def _read(result: Path) -> Report | None:
    try:
        return Report.from_json(json.loads(result.read_text(encoding="utf-8")))
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError) as error:
        return Report(broken(f"its probe's report cannot be read: {error}"))


def _end_of(noise: Path) -> str:
    """Return the end of what the child said: it may have said gigabytes."""
    with noise.open("rb") as file:
        file.seek(max(0, noise.stat().st_size - DETAIL_CHARACTERS))
        return file.read().decode("utf-8", "replace")


def _how_it_ended(code: int) -> str:
    if code < 0:
        with suppress(ValueError):
            return f"its probe was killed by {signal.Signals(-code).name}"
    return f"its probe ended with exit code {code} and no answer"


def _timed_out(timeout_s: float) -> Liveness:
    return Liveness(
        "timed_out",
        reason=f"its probe did not answer within {timeout_s:g} s",
        fix="DEVICECORE_PROBE_TIMEOUT=60 gives every probe 60 s",
    )
