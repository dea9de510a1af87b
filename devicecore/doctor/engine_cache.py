"""Engines that are built at every start, or whose folder cannot hold them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from devicecore.doctor.diagnosis import Finding
from devicecore.errors import EngineCacheError
from devicecore.ort.engine_cache import EngineCache, why_unusable
from devicecore.ort.provider_options import ENGINE_OPTIONS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from devicecore.doctor.case import Case, Session
    from devicecore.ort.provider_options import EngineOptions

_NAME = "engine-build-or-cache"
_OPEN_EARLY = "open the session once before it is needed; several minutes are usual"
_YES = {"1", "true"}


def find(case: Case) -> Iterator[Finding]:
    """Yield what keeps engines from being kept, and first builds that are still to come."""
    if problem := _why_nothing_is_kept():
        advice = "export DEVICECORE_CACHE_DIR=FOLDER, one of your own"
        yield Finding(_NAME, "devicecore cannot keep engines", problem, advice)
    for session in case.sessions:
        if session.trial and session.trial.timed_out:
            yield Finding(
                _NAME,
                f"{session.provider} builds for minutes before the first run",
                f"a session of {session.title} was not open when the doctor stopped waiting",
                _OPEN_EARLY,
            )
        if known := ENGINE_OPTIONS.get(session.provider):
            yield from _of_session(session, known)


def _why_nothing_is_kept() -> str:
    try:
        folder = EngineCache().folder
    except EngineCacheError as error:
        return f"the folder {error.reason}"
    problem = why_unusable(folder)
    return f"{folder} {problem}" if problem else ""


def _of_session(session: Session, known: EngineOptions) -> Iterator[Finding]:
    option = known.folders[0]
    path = session.options.get(option, "")
    is_on = not known.switch or session.options.get(known.switch, "").lower() in _YES
    if not path or not is_on:
        if known.is_slow:
            keys = (known.switch, option) if known.switch else (option,)
            yield Finding(
                _NAME,
                f"{session.provider} builds its engine at every start, which takes up to minutes",
                ", ".join(f"{key} is {session.options.get(key, 'not set')}" for key in keys),
                _advice(known),
            )
    elif not Path(path).is_absolute():
        evidence = f"{option} is {path!r}, which depends on the folder of the start"
        problem = f"{session.provider} does not find its engines again"
        yield Finding(_NAME, problem, evidence, _advice(known))
    elif problem := why_unusable(Path(path)):
        evidence = f"{option}: {path} {problem}"
        problem = f"{session.provider} cannot keep its engines"
        yield Finding(_NAME, problem, evidence, _advice(known))
    elif not _has_files(Path(path)):
        yield Finding(
            _NAME,
            f"the first session builds an engine, and {session.provider} says nothing meanwhile",
            f"{path} holds no engine yet",
            _OPEN_EARLY,
        )


def _advice(known: EngineOptions) -> str:
    options = known.for_folder("/a/folder/for/this/model/and/version")
    return f"open the model with devicecore.onnx.OnnxModel, or give {json.dumps(options)}"


def _has_files(folder: Path) -> bool:
    return folder.is_dir() and any(folder.iterdir())
