"""How a registered factory's liveness is found out: from files, from evidence, or by a probe."""

from __future__ import annotations

import threading
from contextlib import contextmanager, suppress
from importlib import import_module
from typing import TYPE_CHECKING, Any

from attrs import evolve

from devicecore import config
from devicecore.fork import rearm_after_fork
from devicecore.liveness import Liveness
from devicecore.liveness.report import Report, ask, failure

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

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
_LOCK_TIMEOUT_S = 120.0

_UNTRIED = Report(Liveness("untried", reason="nothing was run yet"))


def load(registration: Registration) -> DeviceFactory:
    """Import and build the factory; whatever that raises goes through."""
    factory: Any = registration.factory
    if isinstance(factory, str):
        module, _, name = factory.partition(":")
        factory = getattr(import_module(module), name)
    made: DeviceFactory = factory()
    return made


class Examiner:
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

    def examine(
        self,
        registration: Registration,
        framework: str | None,
        build: Callable[[], DeviceFactory],
        *,
        deep: bool,
    ) -> Report:
        """Return what is known of a factory; with *deep*, probe it if need be.

        Args:
            registration: The factory's registration.
            framework: ``"torch"``, ``"onnx"``, or None for all.
            build: Returns the factory in this process; not called for a foreign one that a child
                can import.
            deep: Whether a probe may be started.
        """
        settings = config.load()
        if registration.device_type.upper() in settings.exclude:
            return Report(Liveness("excluded", reason="DEVICECORE_EXCLUDE leaves it out"))
        if mismatch := _mismatch(registration):
            return Report(mismatch)
        target = registration.target
        if not registration.trusted and target is not None:
            stated = getattr(registration.factory, "probe_timeout_s", _TIMEOUT_S)
            wait_s = settings.probe_timeout_s or stated
            return self._from_child(registration, target, framework, wait_s, deep=deep) or _UNTRIED
        try:
            factory = build()
        except (Exception, SystemExit) as error:  # noqa: BLE001 - it may even try to exit
            return Report(failure(error))
        wait_s = settings.probe_timeout_s or factory.probe_timeout_s
        shallow = ask(factory, framework, deep=False) if registration.trusted else _UNTRIED
        if _is_settled(shallow.liveness, framework):
            return shallow
        if target is None or factory.runs_here(framework):
            found = _asked_here(build, framework, wait_s) if deep else None
        else:
            found = self._from_child(registration, target, framework, wait_s, deep=deep)
            if found is not None and deep and framework is None and _came_to_nothing(found):
                found = self._one_by_one(registration, target, factory.frameworks, wait_s, found)
        return shallow if found is None else _on_top_of(shallow, found)

    def forget(self, registration: Registration) -> None:
        """Delete the evidence about one factory."""
        for framework in (None, *_FRAMEWORKS):
            self.cache.drop(_key(registration, framework))

    def contradict(self, registration: Registration, report: Report) -> None:
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
        timeout_s: float,
        *,
        deep: bool,
    ) -> Report | None:
        """Return the evidence from before or, with *deep*, from a child; None if there is none."""
        found = self._kept(registration, framework)
        if found is None and deep:
            with _one_process_at_a_time(self.cache):
                # Another process may just have found out.
                found = self._kept(registration, framework)
                if found is None:
                    from devicecore.liveness.isolation import ask_in_child  # late: subprocess

                    found = _on_top_of(_UNTRIED, ask_in_child(target, framework, timeout_s))
                    self.cache.put(_key(registration, framework), found.to_json())
        return found

    def _one_by_one(
        self,
        registration: Registration,
        target: str,
        frameworks: Iterable[str],
        timeout_s: float,
        together: Report,
    ) -> Report:
        """Ask each framework in a child of its own, since one took the others along."""
        answers: dict[str, Liveness] = {}
        for name in frameworks:
            alone = self._from_child(registration, target, name, timeout_s, deep=True)
            answers[name] = (alone or together).liveness.of(name)
        live = next((answer for answer in answers.values() if answer.is_live), together.liveness)
        seen: Mapping[str, Liveness] = answers
        report = evolve(together, liveness=evolve(live, frameworks=seen))
        self.cache.put(_key(registration, None), report.to_json())
        return report

    def _kept(self, registration: Registration, framework: str | None) -> Report | None:
        """Return the evidence about a framework, which a probe of all may have told as well."""
        for asked in dict.fromkeys((framework, None)):
            kept = self.cache.get(_key(registration, asked))
            if kept is None:
                continue
            with suppress(KeyError, TypeError, ValueError):  # another version may have written it
                report = Report.from_json(kept)
                if asked == framework or framework in report.liveness.frameworks:
                    return report
        return None


def _came_to_nothing(report: Report) -> bool:
    """Return whether the probe itself ended before it could tell the frameworks apart."""
    return report.liveness.state in ("broken", "timed_out") and not report.liveness.frameworks


def _asked_here(
    build: Callable[[], DeviceFactory], framework: str | None, timeout_s: float
) -> Report:
    from devicecore.liveness.isolation import ask_in_thread  # late: it imports subprocess

    return ask_in_thread(build, framework, timeout_s)


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


def _on_top_of(shallow: Report, deep: Report) -> Report:
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
    """How many probes of this process run behind the one file lock."""

    def __init__(self) -> None:
        self.after_fork()
        rearm_after_fork(self)

    def after_fork(self) -> None:
        """Start with no probe running, as a forked child does."""
        self.guard = threading.Lock()
        self.probes = 0
        self.lock: Any = None


_turn = _Turn()


@contextmanager
def _one_process_at_a_time(cache: EvidenceCache) -> Iterator[None]:
    """Let other processes wait, so that a dozen workers do not all probe the same card.

    Probes of one process run beside each other. A lock that cannot be had is no reason not to
    probe.
    """
    from filelock import FileLock, Timeout

    with _turn.guard:
        if not _turn.probes:
            with suppress(OSError, Timeout):
                cache.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
                _turn.lock = FileLock(cache.folder / "probe.lock", thread_local=False)
                _turn.lock.acquire(timeout=_LOCK_TIMEOUT_S)
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
