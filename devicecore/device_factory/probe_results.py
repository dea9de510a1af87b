"""What was found out of each factory: whoever asks first finds out, and the others wait for it."""

from __future__ import annotations

import math
import threading
import time
from typing import TYPE_CHECKING

from devicecore.debug_log import debug
from devicecore.fork import rearm_after_fork

if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import Future

    from devicecore.device_factory.registration import Registration
    from devicecore.liveness.probe_result import ProbeResult

_RETRY_S = 60.0

_Question = tuple["Registration", "str | None"]


class ProbeResults:
    """Reports by factory and framework; nobody is asked with the lock held."""

    def __init__(self) -> None:
        self._results: dict[_Question, Future[ProbeResult]] = {}
        # A time-out is no absence: the machine may have been busy, so it does not count for long.
        self._retry_at: dict[_Question, float] = {}
        self._lock = threading.Lock()
        rearm_after_fork(self)

    def get(
        self, registration: Registration, framework: str | None, find_out: Callable[[], ProbeResult]
    ) -> ProbeResult:
        """Return the report, made by *find_out* if nobody has asked before."""
        with self._lock:
            known = self._find(registration, framework)
            mine = known is None
            if known is None:
                known = self._results[registration, framework] = _pending()
                self._retry_at.pop((registration, framework), None)
        if mine:
            from devicecore.device.pool import run_into

            run_into(known, find_out)
            with self._lock:
                if known.exception() is not None:  # an interrupted probe says nothing
                    self._results.pop((registration, framework), None)
                elif _timed_out(known.result()):
                    self._retry_at[registration, framework] = time.monotonic() + _RETRY_S
            if known.exception() is None:
                found = known.result().liveness
                asked = registration.device_type, registration.origin, framework or "anything"
                text = "%s of %s for %s is %s (%s)%s"
                reason = f": {found.reason}" if found.reason else ""
                debug(text, *asked, found.state, found.evidence, reason)
        elif not known.done():
            from devicecore.device.pool import wait_until_done

            wait_until_done([known])
        return known.result()

    def known(self, registration: Registration, framework: str | None) -> ProbeResult | None:
        """Return the report if there is one already."""
        with self._lock:
            known = self._find(registration, framework)
        return known.result() if known is not None and known.done() else None

    def replace(self, registration: Registration, report: ProbeResult) -> None:
        """Put *report* in the place of all there are of a factory."""
        replaced = _pending()
        replaced.set_result(report)
        with self._lock:
            for question in [asked for asked in self._results if asked[0] == registration]:
                self._results[question] = replaced
            self._results[registration, None] = replaced

    def forget(self, registration: Registration | None = None) -> None:
        """Forget all of one factory, or of all."""
        with self._lock:
            self._results = {
                question: report
                for question, report in self._results.items()
                if registration is not None and question[0] != registration
            }

    def after_fork(self) -> None:
        """Take a lock of its own in a forked child, and leave probes that nobody finishes."""
        self._lock = threading.Lock()
        self._results = {
            question: report for question, report in self._results.items() if report.done()
        }

    def _find(
        self, registration: Registration, framework: str | None
    ) -> Future[ProbeResult] | None:
        for question in ((registration, None), (registration, framework)):
            report = self._results.get(question)
            if report is not None and time.monotonic() < self._retry_at.get(question, math.inf):
                return report
        return None


def _timed_out(report: ProbeResult) -> bool:
    answers = (report.liveness, *report.liveness.frameworks.values())
    return any(answer.state == "timed_out" for answer in answers)


def _pending() -> Future[ProbeResult]:
    from concurrent.futures import Future  # late: it imports logging

    return Future()
