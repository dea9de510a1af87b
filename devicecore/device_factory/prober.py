"""How a registered factory's liveness is found out: from files, from evidence, or by a probe."""

from __future__ import annotations

import time
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from attrs import evolve

from devicecore import config
from devicecore.fork import rearm_after_fork
from devicecore.liveness import Liveness
from devicecore.liveness.probe_result import (
    ProbeResult,
    ProbesStoppedError,
    failure,
    pass_on_interrupt,
    probe,
    read_probe_result,
)
from devicecore.liveness.target import resolve
from devicecore.locks import PatientLock

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from filelock import FileLock

    from devicecore.device_factory.factory import DeviceFactory
    from devicecore.device_factory.registration import Registration
    from devicecore.liveness.evidence import EvidenceCache

# Whatever a factory drives is in one of these, or comes with its own module.
_FRAMEWORK_PACKAGES = (
    "torch",
    "onnxruntime",
    "onnxruntime_ep_nv_tensorrt_rtx",
    "onnxruntime_ep_openvino",
    "onnxruntime_ep_webgpu",
    "nxrt_ep_cuda",
)
_FRAMEWORKS = ("torch", "onnx")
_TIMEOUT_S = 10.0
_LEAST_AT_ONCE = 4
_LOCK_TIMEOUT_S = 120.0
_SLICE_S = 0.2

_UNTRIED = ProbeResult(Liveness("untried", reason="nothing was run yet"))


def load(registration: Registration) -> DeviceFactory:
    """Import and build the factory; whatever that raises goes through."""
    factory: Any = registration.factory
    if isinstance(factory, str):
        factory = resolve(factory)
    made: DeviceFactory = factory()
    return made


class Prober:
    """Finds out whether registered factories are live, as cheaply as can be.

    Args:
        cache: Where evidence is kept between processes.
    """

    def __init__(self, cache: EvidenceCache | None = None) -> None:
        self._cache = cache

    @property
    def cache(self) -> EvidenceCache:
        """Where evidence is kept between processes."""
        if self._cache is None:
            from devicecore.liveness.evidence import EvidenceCache  # late: json, pathlib

            self._cache = EvidenceCache()
        return self._cache

    def probe(
        self,
        registration: Registration,
        framework: str | None,
        build: Callable[[], DeviceFactory],
        *,
        deep: bool,
    ) -> ProbeResult:
        """Return what is known of a factory; with *deep*, probe it if need be.

        Args:
            registration: The factory's registration.
            framework: ``"torch"``, ``"onnx"``, or None for all.
            build: Returns the factory in this process; not called for a foreign one that a child
                can import.
            deep: Whether a probe may be started.
        """
        if mismatch := _mismatch(registration):
            return ProbeResult(mismatch)
        target = registration.target
        if not registration.trusted and target is not None:
            return self._from_child(registration, target, framework, deep=deep) or _UNTRIED
        try:
            return self._of_built(build(), registration, framework, build, deep=deep)
        except BaseException as error:  # noqa: BLE001 - it may even try to exit
            pass_on_interrupt(error)
            return ProbeResult(failure(error))

    def _of_built(
        self,
        factory: DeviceFactory,
        registration: Registration,
        framework: str | None,
        build: Callable[[], DeviceFactory],
        *,
        deep: bool,
    ) -> ProbeResult:
        """Return what is known of a factory that was built in this process."""
        target = registration.target
        shallow = probe(factory, framework, deep=False) if registration.trusted else _UNTRIED
        if _is_settled(shallow.liveness, framework):
            return shallow
        if target is None or factory.runs_here(framework):
            found = _probed_here(build, framework, factory.probe_timeout_s) if deep else None
        else:
            found = self._from_child(registration, target, framework, deep=deep)
            if found is not None and deep and framework is None and _came_to_nothing(found):
                found = self._one_by_one(registration, target, factory.frameworks, found)
        return shallow if found is None else _on_top_of(shallow, found)

    def forget(self, registration: Registration) -> None:
        """Delete the evidence about one factory."""
        for framework in (None, *_FRAMEWORKS):
            self.cache.drop(_key(registration, framework))

    def contradict(self, registration: Registration, report: ProbeResult) -> None:
        """Put what a real use has shown in place of the evidence, for the next process."""
        for framework in (None, *_FRAMEWORKS):
            key = _key(registration, framework)
            if self.cache.get(key) is not None:
                self.cache.put(key, report.to_json())

    def _from_child(
        self,
        registration: Registration,
        target: str,
        framework: str | None,
        *,
        deep: bool,
    ) -> ProbeResult | None:
        """Return the evidence from before or, with *deep*, from a child; None if there is none."""
        found = self._kept(registration, framework)
        if found is None and deep:
            with _one_process_at_a_time(self.cache):
                # Another process may just have found out.
                found = self._kept(registration, framework)
                if found is None:
                    found = _on_top_of(_UNTRIED, _probed_in_child(target, framework))
                    self._keep(registration, framework, found)
        return found

    def _keep(self, registration: Registration, framework: str | None, report: ProbeResult) -> None:
        """Keep a report for the next process; a time-out says nothing of the next time."""
        answers = (report.liveness, *report.liveness.frameworks.values())
        if all(answer.state != "timed_out" for answer in answers):
            self.cache.put(_key(registration, framework), report.to_json())

    def _one_by_one(
        self,
        registration: Registration,
        target: str,
        frameworks: Iterable[str],
        together: ProbeResult,
    ) -> ProbeResult:
        """Ask each framework in a child of its own, since one took the others along."""
        answers: dict[str, Liveness] = {}
        for name in frameworks:
            alone = self._from_child(registration, target, name, deep=True)
            answers[name] = (alone or together).liveness.of(name)
        live = next((answer for answer in answers.values() if answer.is_live), together.liveness)
        seen: Mapping[str, Liveness] = answers
        report = evolve(together, liveness=evolve(live, frameworks=seen))
        self._keep(registration, None, report)
        return report

    def _kept(self, registration: Registration, framework: str | None) -> ProbeResult | None:
        """Return the evidence about a framework, which a probe of all may have told as well."""
        for asked in dict.fromkeys((framework, None)):
            kept = self.cache.get(_key(registration, asked))
            if kept is None:
                continue
            report = read_probe_result(kept)  # None where another version has written it
            if report and (asked == framework or framework in report.liveness.frameworks):
                return report
        return None


def _came_to_nothing(report: ProbeResult) -> bool:
    """Return whether the probe itself ended before it could tell the frameworks apart."""
    return report.liveness.state in ("broken", "timed_out") and not report.liveness.frameworks


def _probed_here(
    build: Callable[[], DeviceFactory], framework: str | None, stated_s: object
) -> ProbeResult:
    from devicecore.liveness.isolation import probe_in_thread  # late: it imports subprocess
    from devicecore.liveness.probe_process import checked_timeout

    fixed_s = config.load().probe_timeout_s
    return probe_in_thread(build, framework, fixed_s or checked_timeout(stated_s) or _TIMEOUT_S)


def _probed_in_child(target: str, framework: str | None) -> ProbeResult:
    from devicecore.liveness.isolation import probe_in_child  # late: it imports subprocess

    fixed_s = config.load().probe_timeout_s
    return probe_in_child(target, framework, fixed_s or _TIMEOUT_S, own_timeout=fixed_s is None)


def _key(registration: Registration, framework: str | None) -> str:
    from devicecore.liveness.evidence import evidence_key

    modules = {*_FRAMEWORK_PACKAGES}
    if target := registration.target:
        modules.add(target.partition(":")[0])
    subject = "/".join((*registration.identity, framework or ""))
    return evidence_key(subject, modules, registration.version)


def _mismatch(registration: Registration) -> Liveness | None:
    """Return why a plug-in cannot work with this devicecore, from its metadata alone."""
    if not registration.requires:
        return None
    from packaging.specifiers import SpecifierSet

    from devicecore import __version__

    if SpecifierSet(registration.requires).contains(__version__, prereleases=True):
        return None
    return Liveness(
        "version_mismatch",
        reason=f"{registration.origin} wants devicecore {registration.requires}, "
        f"and this is {__version__}",
        fix=f"pip install --upgrade {registration.distribution} devicecore",
    )


def _is_settled(shallow: Liveness, framework: str | None) -> bool:
    """Return whether looking was enough to know all that was asked."""
    asked = [shallow.of(framework)] if framework else [shallow, *shallow.frameworks.values()]
    return all(liveness.state != "untried" for liveness in asked)


def _on_top_of(shallow: ProbeResult, deep: ProbeResult) -> ProbeResult:
    """Return the deep report, calling nothing live that did not compute something.

    What lives without any framework, as the host does, still lives if a framework's probe fails.
    """
    liveness = deep.liveness
    if liveness.state == "live" and liveness.evidence != "ran":
        reason = liveness.reason or "its probe ran nothing"
        liveness = evolve(liveness, state="untried", reason=reason)
    if shallow.liveness.is_live and not liveness.is_live:
        frameworks: Mapping[str, Liveness] = {
            name: liveness if known.state == "untried" else known
            for name, known in shallow.liveness.frameworks.items()
        }
        liveness = evolve(shallow.liveness, frameworks=frameworks, seconds=liveness.seconds)
    return evolve(deep, liveness=liveness)


class _Turn:
    """How many probes of this process run behind the one file lock.

    Attributes:
        interrupts: How often a person has stopped all probes; who waits then gives up.
    """

    interrupts = 0

    def __init__(self) -> None:
        self.after_fork()
        rearm_after_fork(self)

    def after_fork(self) -> None:
        """Start with no probe running, as a forked child does."""
        self.guard = PatientLock()
        self.probes = 0
        self.lock: Any = None


_turn = _Turn()


@contextmanager
def _one_process_at_a_time(cache: EvidenceCache) -> Iterator[None]:
    """Let other processes wait, so that a dozen workers do not all probe the same GPU.

    Probes of one process run beside each other. A lock that cannot be had is no reason not to
    probe.
    """
    before = _turn.interrupts
    with _turn.guard:
        if not _turn.probes and (folder := cache.usable_folder(make=True)):
            with suppress(OSError):
                _turn.lock = _acquired(folder / "probe.lock", before)
        if _turn.interrupts != before:
            raise ProbesStoppedError
        _turn.probes += 1
    try:
        yield
    finally:
        with _turn.guard:
            _turn.probes -= 1
            if not _turn.probes and _turn.lock is not None:
                with suppress(OSError):
                    _turn.lock.release()
                _turn.lock = None


def _acquired(file: Path, interrupts: int) -> FileLock | None:
    """Return the lock on *file*, or None if it cannot be had, or not before an interrupt."""
    from filelock import FileLock, Timeout

    lock = FileLock(file, thread_local=False)
    deadline = time.monotonic() + _LOCK_TIMEOUT_S
    while _turn.interrupts == interrupts and time.monotonic() < deadline:
        with suppress(Timeout):
            lock.acquire(timeout=_SLICE_S)
            return lock
    return None


def run_concurrently(
    probe_one: Callable[..., object], questions: Sequence[tuple[Any, ...]]
) -> None:
    """Call *probe_one* with each of *questions*, many at once; Ctrl-C ends all that they wait for.

    Not all at once: each may start a process that imports a large framework. One that hangs keeps
    the others waiting for its place until its time is over, and only if as many others hang.
    """
    if not questions:
        return
    most = max(_LEAST_AT_ONCE, config.effective_cpu_count())
    from concurrent.futures import ThreadPoolExecutor

    from devicecore.device.pool import wait_until_done

    with ThreadPoolExecutor(min(len(questions), most), "devicecore-probe") as threads:
        try:
            asked = [threads.submit(probe_one, *question) for question in questions]
            wait_until_done(asked)
            for one in asked:
                one.result()
        except KeyboardInterrupt:
            from devicecore.liveness.isolation import stop_probes  # late: it imports subprocess

            threads.shutdown(wait=False, cancel_futures=True)
            _turn.interrupts += 1  # for those that wait for another process
            stop_probes()
            raise
