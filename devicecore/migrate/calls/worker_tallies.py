"""Sends the counts of worker processes to their parent, through a folder of their own."""

from __future__ import annotations

import atexit
import json
import os
import shutil
import tempfile
import time
import uuid
from contextlib import suppress
from multiprocessing import process
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from attrs import asdict

from devicecore.fork import rearm_after_fork
from devicecore.migrate.calls.report import CallStats

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

# Processes that multiprocessing starts have what is there, however they start.
_KEY: Final = "devicecore_tallies"
# Which of them has begun to warn of each plan.
_WARNING: Final = "devicecore_warning"
# A worker that is ended by force has told all but the calls of the last moment.
_INTERVAL_S: Final = 0.1


class WorkerTallies:
    """Sends what a worker has counted for a plan, and reads what workers have sent.

    Args:
        plan: What tells the plan from others.
        counted: Returns the keys that were for calls, and the rows of this process alone.
    """

    def __init__(self, plan: str, counted: Callable[[], tuple[list[str], list[CallStats]]]) -> None:
        self._plan = plan
        self._counted = counted
        self._token = uuid.uuid4().hex
        self._since = time.time_ns()
        self._last = 0.0
        self._name = ""  # of a worker that has told something
        self._is_worker = _started_by() is not None
        self._is_forked = False
        rearm_after_fork(self)

    def after_fork(self) -> None:
        """Be a worker of the process that there was before."""
        self._is_worker = self._is_forked = True
        self._name = ""

    def begin(self) -> None:
        """Make the folder in which workers of this process tell what they count."""
        if not self._is_worker and _config().get(_KEY) is None:
            with suppress(OSError):  # without one, nobody can be told
                folder = tempfile.mkdtemp(prefix="devicecore-tallies-")
                _config()[_KEY] = (os.getpid(), folder)
                atexit.register(_remove, os.getpid(), folder)

    def is_to_warn(self) -> bool:
        """Return whether this process is the one to warn of what is wrong with the plan.

        That is the one that has started the others, if it has used the plan before them, or else
        the first one of them.
        """
        process_of_plan = _config().setdefault(_WARNING, {})
        number: tuple[int, ...] = process.current_process()._identity  # noqa: SLF001 - as above
        is_own = process_of_plan.setdefault(self._plan, os.getpid()) == os.getpid()
        return bool(is_own) and all(each == 1 for each in number)

    def told(self, *, at_once: bool = False) -> None:
        """Send what was counted, if this is a worker; not after each of many calls.

        Args:
            at_once: Whether also after one of these, as the worker may not get to another.
        """
        if not self._is_worker:
            return
        now = time.monotonic()
        if not self._name:
            self._name = f"{os.getpid()}-{uuid.uuid4().hex}"
            # Only now: after a fork, multiprocessing forgets those of its parent. And in the
            # process of a program, its import would have its exit handler run too late.
            from multiprocessing import util

            util.Finalize(None, self._send, exitpriority=100)
        elif not at_once and now - self._last < _INTERVAL_S:
            return
        self._last = now
        self._send()

    def _send(self) -> None:
        given = _started_by()
        if given is None:
            return
        keys, rows = self._counted()
        token = self._token if self._is_forked else ""
        said = {"plan": self._plan, "token": token, "keys": keys, "rows": [*map(asdict, rows)]}
        path = Path(given) / self._name
        with suppress(OSError):  # that process has ended, or there is no more room
            path.with_suffix(".new").write_text(json.dumps(said), encoding="utf-8")
            path.with_suffix(".new").replace(path.with_suffix(".json"))

    def received(self) -> tuple[set[str], list[CallStats]]:
        """Return the keys that were for calls of workers, and their rows."""
        keys: set[str] = set()
        rows: list[CallStats] = []
        for said in self._files():
            keys.update(said["keys"])
            rows += [CallStats(**row) for row in said["rows"]]
        return keys, rows

    def _files(self) -> Iterator[Any]:
        owner, folder = _config().get(_KEY) or (0, "")
        if owner != os.getpid():
            return
        for path in sorted(Path(folder).glob("*.json")):
            said = json.loads(path.read_text(encoding="utf-8"))
            is_new = bool(said["token"]) or path.stat().st_mtime_ns >= self._since
            if said["plan"] == self._plan and is_new and said["token"] in {"", self._token}:
                yield said


def _config() -> dict[str, Any]:
    return process.current_process()._config  # type: ignore[attr-defined, no-any-return]  # noqa: SLF001


def _started_by() -> str | None:
    """Return the folder of the process that this one is a worker of."""
    owner, folder = _config().get(_KEY) or (os.getpid(), None)
    return None if owner == os.getpid() else folder


def _remove(owner: int, folder: str) -> None:
    if os.getpid() == owner:
        shutil.rmtree(folder, ignore_errors=True)
