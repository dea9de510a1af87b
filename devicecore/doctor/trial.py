"""Open a session in a child process the way a program does without us, and see what comes of it."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import time
import warnings
from typing import TYPE_CHECKING, Any

from attrs import asdict, evolve

from devicecore.doctor.case import Session, Trial
from devicecore.errors import MissingDependencyError, ModelError, NotLiveError
from devicecore.liveness.interpreter import interpreter
from devicecore.locks import SLICE_S
from devicecore.optional import installed, require
from devicecore.optional.search_path import search_path
from devicecore.ort import (
    CPU_PROVIDER,
    PROVIDERS,
    ep_devices,
    ort_package,
    plugin_library,
    provider_library,
    provider_named,
    register,
)
from devicecore.ort.error_translation import message_of
from devicecore.ort.log_capture import captured_log
from devicecore.ort.model_file import checked_model
from devicecore.ort.node_placement import RECORD_KEY, can_record, recorded_nodes
from devicecore.ort.package import is_built_in
from devicecore.ort.tiny_model import tiny_model

if TYPE_CHECKING:
    from pathlib import Path

_LOG = logging.getLogger("devicecore")
_TIMEOUT_S = 120.0  # TensorRT may build longer, and that is then the finding
_MARK = "devicecore-trial: "
_BOOT = """\
import json, sys
job = json.load(sys.stdin)
sys.path[:] = job["path"]
from devicecore.doctor.trial import answer
answer(job)
"""


def sessions_to_try(model: Path) -> tuple[Session, ...]:
    """Return a session of *model* for each provider that is installed here, none for the CPU."""
    package = ort_package()
    names = [
        known.name
        for known in PROVIDERS.values()
        if known.name != CPU_PROVIDER
        and (
            (package and is_built_in(known, package) and provider_library(known.name))
            or (known.plugin and plugin_library(known.plugin))
        )
    ]
    return tuple(Session(name, model=model) for name in names)


def tried(session: Session, timeout_s: float = _TIMEOUT_S) -> Session:
    """Return *session* with what came of opening it in a child process.

    Without an interpreter to start, as in a program that embeds Python, it is returned untried.

    Raises:
        ModelError: The model is at fault, whatever the provider.
        MissingDependencyError: ONNX Runtime is not installed.
    """
    if not installed("onnxruntime"):
        raise MissingDependencyError("onnxruntime", "onnx")
    model = str(checked_model(session.model)) if session.model else ""
    python = interpreter()
    if python is None:
        _LOG.warning(
            "a session of %s on %s was not tried: this program embeds Python or is frozen, and has "
            "no interpreter to start; run `devicecore doctor` with a Python of its own",
            session.title,
            session.provider,
        )
        return session
    job = {
        "path": search_path(),
        "model": model,
        "provider": session.provider,
        "options": dict(session.options),
        "library": session.library,
    }
    try:
        child = _run([python, "-P", "-c", _BOOT], json.dumps(job), timeout_s)
    except subprocess.TimeoutExpired:
        return evolve(session, trial=Trial(timed_out=True))
    except OSError as error:  # no memory or no descriptors left
        return evolve(session, trial=Trial(error=f"its process could not be started: {error}"))
    # What was told counts even if the process then died: runtimes crash on their way out.
    _, mark, answer = child.stdout.rpartition(_MARK)
    if not (mark and answer.endswith("\n")):
        said = (child.stderr.strip().splitlines() or [f"exit code {child.returncode}"])[-1]
        return evolve(session, trial=Trial(error=f"the process ended: {said}"))
    found = json.loads(answer)
    if fault := found.pop("fault", ""):
        raise ModelError(model or session.title, fault)
    return evolve(session, trial=_from_json(found))


def _run(command: list[str], text: str, timeout_s: float) -> subprocess.CompletedProcess[str]:
    """Do what `subprocess.run` does, waiting in slices so that a Ctrl-C ends it."""
    pipe, end = subprocess.PIPE, time.monotonic() + timeout_s
    with subprocess.Popen(  # noqa: S603 - our own interpreter with our own text
        command, stdin=pipe, stdout=pipe, stderr=pipe, text=True, errors="replace"
    ) as child:
        given: str | None = text
        try:
            while True:
                try:
                    stdout, stderr = child.communicate(given, SLICE_S)
                except subprocess.TimeoutExpired:
                    if time.monotonic() > end:
                        raise
                    given = None  # it has that
                else:
                    return subprocess.CompletedProcess(command, child.returncode, stdout, stderr)
        finally:
            child.kill()


def _from_json(found: dict[str, Any]) -> Trial:
    return Trial(
        **{
            **found,
            "log": tuple(found["log"]),
            "operators": frozenset(found["operators"]),
            "open_inputs": tuple(found["open_inputs"]),
        }
    )


def answer(job: dict[str, Any]) -> None:
    """Write what came of *job* to stdout, and end this process, which is the child."""
    told = os.dup(1)
    os.dup2(2, 1)  # what a runtime prints is none of it
    with os.fdopen(told, "w", encoding="utf-8") as parent:
        parent.write(f"{_MARK}{json.dumps(_opened(job))}\n")
    os._exit(0)  # a runtime's own clean-up may take seconds, or crash


def _opened(job: dict[str, Any]) -> dict[str, Any]:
    ort = require("onnxruntime", extra="onnx")
    source = job["model"] or tiny_model()
    with warnings.catch_warnings(record=True), captured_log(native=True) as log:
        try:
            plain = _session(ort, source, CPU_PROVIDER, {})
        except Exception as error:  # noqa: BLE001 - its errors share no other base
            return {"fault": message_of(error)}
        trial = Trial(operators=_operators(plain), open_inputs=_open_inputs(plain))
        trial = _with_provider(ort, source, job, trial)
    found = asdict(evolve(trial, log=tuple(log)))
    return {**found, "operators": sorted(trial.operators)}


def _with_provider(ort: Any, source: bytes | str, job: dict[str, Any], trial: Trial) -> Trial:
    provider = job["provider"]
    try:
        if library := job["library"] or _plugin(provider):
            register(library)
        trial = evolve(trial, devices=len(ep_devices(provider)))
        session = _session(ort, source, provider, job["options"])
    except NotLiveError as error:
        return evolve(trial, error=error.reason)
    except Exception as error:  # noqa: BLE001 - its errors share no other base
        return evolve(trial, error=message_of(error))
    nodes = recorded_nodes(session) if can_record(ort) else {}
    return evolve(trial, nodes=nodes, listed=provider in session.get_providers())


def _plugin(provider: str) -> str | None:
    plugin = provider_named(provider).plugin
    library = plugin_library(plugin) if plugin else None
    return str(library) if library else None


def _session(ort: Any, source: bytes | str, provider: str, options: dict[str, str]) -> Any:
    settings = ort.SessionOptions()
    settings.intra_op_num_threads = 1
    if can_record(ort):
        settings.add_session_config_entry(RECORD_KEY, "1")
    providers = [(provider, options)]
    if provider != CPU_PROVIDER:
        providers.append((CPU_PROVIDER, {}))
    return ort.InferenceSession(source, settings, providers=providers, enable_fallback=0)


def _operators(session: Any) -> frozenset[str]:
    if not hasattr(session, "get_provider_graph_assignment_info"):
        return frozenset()
    parts = session.get_provider_graph_assignment_info()
    return frozenset(node.op_type for part in parts for node in part.get_nodes())


def _open_inputs(session: Any) -> tuple[str, ...]:
    return tuple(
        f"{each.name} [{', '.join(str(size) for size in each.shape)}]"
        for each in session.get_inputs()
        if not all(isinstance(size, int) for size in each.shape)
    )
