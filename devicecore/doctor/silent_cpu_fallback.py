"""Providers that are listed and do nothing: the session runs on the CPU, and says so nowhere."""

from __future__ import annotations

from typing import TYPE_CHECKING

from devicecore.doctor.diagnosis import Finding
from devicecore.doctor.libraries import lacks
from devicecore.ort import ort_package, provider_named
from devicecore.ort.builds import lack_of, without_hardware
from devicecore.ort.package import is_built_in

if TYPE_CHECKING:
    from collections.abc import Iterator

    from devicecore.doctor.case import Case, Session, Trial

_NAME = "silent-cpu-fallback"
_STRICT = 'options.add_session_config_entry("session.disable_cpu_ep_fallback", "1")'


def find(case: Case) -> Iterator[Finding]:
    """Yield the listed providers whose library cannot be loaded, and the sessions on the CPU."""
    for lack in lacks(case):
        missing = (*lack.nowhere, *lack.elsewhere)
        if missing and not lack.is_plugin:
            yield Finding(
                _NAME,
                f"a session that asks for {lack.provider.name} runs on the CPU, without an error",
                f"get_available_providers() lists it, {lack.library.name} cannot be loaded: "
                f"{', '.join(missing)}",
                f"{_STRICT} makes it an error; the next findings say what is missing",
            )
    for session in case.sessions:
        if session.trial and not session.is_cpu:
            yield from _of_session(session, session.trial, case)


def _of_session(session: Session, trial: Trial, case: Case) -> Iterator[Finding]:
    live, total = trial.nodes.get(session.provider, 0), trial.total
    if not total and not trial.error:  # ONNX Runtime < 1.24 does not tell
        return
    seen = (
        f"{live} of {total} nodes of {session.title} are on {session.provider}"
        if total
        else f"{session.provider} refuses the session, and onnxruntime then opens one without it"
    )
    if total and live == total:
        return
    if live:
        yield Finding(
            _NAME,
            f"part of {session.title} runs on the CPU",
            seen,
            f'OnnxModel("{session.title}", min_nodes=1.0) refuses that',
        )
        return
    if trial.listed:
        seen = f"{seen}, although session.get_providers() lists it"
    why, fix = _why(session, case)
    said = why or trial.error or " | ".join(trial.log)
    yield Finding(
        _NAME,
        f"a session of {session.title} that asks for {session.provider} runs on the CPU",
        f"{seen}: {said}" if said else seen,
        fix or f"{_STRICT} makes it an error",
    )


def _why(session: Session, case: Case) -> tuple[str, str]:
    """Return why the provider cannot be there at all, and the fix; empty where it can."""
    package, known = ort_package(), provider_named(session.provider)
    trial = session.trial
    state, lack, fix = "", "", ""
    if package is not None and not session.is_plugin and not is_built_in(known, package):
        state, lack, fix = lack_of(known, package)
    if known.device_type in case.absent_types and state != "broken":
        why = without_hardware(known) or f"there is no hardware for {known.device_type} here"
        return why, "choose a provider whose hardware is here"
    if session.is_plugin and trial and not trial.devices and not trial.error:
        return "its plug-in offers no device for the hardware here", "choose another provider"
    return lack, fix
