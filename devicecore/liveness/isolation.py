"""Run a foreign probe where it can do no harm: in a child process, or at least in a thread.

A probe may raise, hang, print, return nonsense or kill its process. Whatever it does, the caller
gets a `ProbeResult` within the time-out.
"""

from __future__ import annotations

import signal
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING

from attrs import evolve

from devicecore.liveness.probe_process import ProbeProcess, running_probes, stop_probes
from devicecore.liveness.probe_result import (
    ProbeResult,
    ProbesStoppedError,
    broken,
    failure,
    probe,
    read_probe_result,
)
from devicecore.liveness.state import Liveness
from devicecore.locks import SLICE_S
from devicecore.optional.search_path import search_path

if TYPE_CHECKING:
    from collections.abc import Callable

    from devicecore.liveness.probe_result import Probeable

__all__ = ["probe_in_child", "probe_in_thread", "stop_probes"]


def probe_in_thread(
    prober: Callable[[], Probeable], framework: str | None, timeout_s: float
) -> ProbeResult:
    """Ask in a thread of this process: it may hang, but it can still kill the process.

    A thread cannot be stopped, so one that hangs stays behind.

    Raises:
        InterruptedError: `stop_probes` was called meanwhile.
    """
    reports: list[ProbeResult] = []

    def work() -> None:
        try:
            reports.append(probe(prober(), framework))
        except BaseException as error:  # noqa: BLE001 - a factory may even try to exit
            reports.append(ProbeResult(failure(error)))

    thread = threading.Thread(target=work, name="devicecore-probe", daemon=True)
    running_probes.add(thread)
    try:
        thread.start()
        end = time.monotonic() + timeout_s
        while thread.is_alive() and (left_s := end - time.monotonic()) > 0:
            if thread not in running_probes:
                raise ProbesStoppedError
            thread.join(min(left_s, SLICE_S))
    finally:
        running_probes.discard(thread)
    return reports[0] if reports else ProbeResult(_timed_out(timeout_s))


def probe_in_child(
    target: str, framework: str | None, timeout_s: float, *, own_timeout: bool = False
) -> ProbeResult:
    """Ask the factory that *target* names, as ``"module:Class"``, in a child process.

    Args:
        target: The factory.
        framework: What it is asked about, or None for all.
        timeout_s: How long it may take.
        own_timeout: Whether the time that the factory itself states counts instead, and the first
            import of a large framework, which a busy machine makes slow, does not count.

    Raises:
        InterruptedError: `stop_probes` was called meanwhile.
    """
    started = time.perf_counter()
    job = {"path": search_path(), "target": target, "framework": framework}
    try:
        child = ProbeProcess(job)
    except OSError as error:  # no interpreter, no memory or no descriptors left
        return ProbeResult(broken(f"its probe could not be started: {error}"))
    with child:
        in_time = child.wait(timeout_s, own_timeout=own_timeout)
    # What was told counts even if the process then died: runtimes crash on their way out.
    said = child.said.get("report")
    if said is not None:
        report = read_probe_result(said)
        return report or ProbeResult(broken("its probe's report cannot be read"))
    liveness = broken(_how_it_ended(child.exit_code))
    if not in_time:
        liveness = _timed_out(child.limit_s, child.importing)
    seconds = time.perf_counter() - started
    return ProbeResult(evolve(liveness, detail=child.noise, seconds=seconds))


def _how_it_ended(code: int) -> str:
    if code < 0:
        with suppress(ValueError):
            return f"its probe was killed by {signal.Signals(-code).name}"
    return f"its probe ended with exit code {code} and no answer"


def _timed_out(timeout_s: float, importing: str = "") -> Liveness:
    meanwhile = f", and was still importing {importing}" if importing else ""
    return Liveness(
        "timed_out",
        reason=f"its probe did not answer within {timeout_s:g} s{meanwhile}; it may work",
        fix="DEVICECORE_PROBE_TIMEOUT=60 gives every probe 60 s",
    )
