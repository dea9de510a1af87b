"""Engines that are built at every start, or whose folder cannot hold them."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING

from attrs import frozen

from devicecore import config
from devicecore.doctor.diagnosis import Finding

if TYPE_CHECKING:
    from collections.abc import Iterator

    from devicecore.doctor.case import Case, Session

_NAME = "engine-build-or-cache"
_OPEN_EARLY = "open the session once before it is needed; several minutes are usual"
_YES = {"1", "true"}


@frozen
class _Cache:
    """How one provider is told to keep its engines.

    Attributes:
        path: The option that holds the folder.
        switch: The option that turns it on; empty where the folder does.
    """

    path: str
    switch: str = ""


_CACHES = {
    "TensorrtExecutionProvider": _Cache("trt_engine_cache_path", "trt_engine_cache_enable"),
    "NvTensorRTRTXExecutionProvider": _Cache("nv_runtime_cache_path"),
    "CoreMLExecutionProvider": _Cache("ModelCacheDirectory"),
}


def find(case: Case) -> Iterator[Finding]:
    """Yield what keeps engines from being kept, and first builds that are still to come."""
    folder = config.load().cache_dir
    if problem := _unusable(folder):
        yield Finding(
            _NAME,
            "devicecore cannot keep anything in its cache folder",
            f"{folder} {problem}",
            "export DEVICECORE_CACHE_DIR=FOLDER, one of your own",
        )
    for session in case.sessions:
        if session.trial and session.trial.timed_out:
            yield Finding(
                _NAME,
                f"{session.provider} builds for minutes before the first run",
                f"a session of {session.title} was not open when the doctor stopped waiting",
                _OPEN_EARLY,
            )
        if cache := _CACHES.get(session.provider):
            yield from _of_session(session, cache)


def _of_session(session: Session, cache: _Cache) -> Iterator[Finding]:
    path = session.options.get(cache.path, "")
    is_on = not cache.switch or session.options.get(cache.switch, "").lower() in _YES
    if not path or not is_on:
        yield Finding(
            _NAME,
            f"{session.provider} builds its engine at every start, which takes up to minutes",
            ", ".join(f"{key} is {session.options.get(key, 'not set')}" for key in _keys(cache)),
            _advice(cache),
        )
    elif not Path(path).is_absolute():
        evidence = f"{cache.path} is {path!r}, which depends on the folder of the start"
        problem = f"{session.provider} does not find its engines again"
        yield Finding(_NAME, problem, evidence, _advice(cache))
    elif problem := _unusable(Path(path)):
        evidence = f"{cache.path}: {path} {problem}"
        problem = f"{session.provider} cannot keep its engines"
        yield Finding(_NAME, problem, evidence, _advice(cache))
    elif not _has_files(Path(path)):
        yield Finding(
            _NAME,
            f"the first session builds an engine, and {session.provider} says nothing meanwhile",
            f"{path} holds no engine yet",
            _OPEN_EARLY,
        )


def _keys(cache: _Cache) -> tuple[str, ...]:
    return (cache.switch, cache.path) if cache.switch else (cache.path,)


def _advice(cache: _Cache) -> str:
    switch = f'"{cache.switch}": "1", ' if cache.switch else ""
    return f'{{{switch}"{cache.path}": "/a/folder/for/this/model/and/version"}}'


def _unusable(folder: Path) -> str:
    """Return why nothing can be kept in *folder*; one that does not exist yet is fine."""
    nearest = next(place for place in (folder, *folder.parents) if place.exists())
    if not nearest.is_dir():
        return "is no folder" if nearest == folder else f"lies below {nearest}, a file"
    if not os.access(nearest, os.W_OK | os.X_OK):
        return "cannot be written to"
    if nearest == folder and hasattr(os, "getuid"):
        facts = folder.stat()
        if facts.st_uid != os.getuid():
            return "belongs to somebody else"
        if facts.st_mode & stat.S_IWOTH:
            return "can be written to by everybody, and engines are programs"
    return ""


def _has_files(folder: Path) -> bool:
    return folder.is_dir() and any(folder.iterdir())
