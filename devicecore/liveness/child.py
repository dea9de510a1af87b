"""The child's side of a probe: build the factory, ask it, write the answer, leave at once."""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from contextlib import suppress
from importlib.machinery import PathFinder
from typing import TYPE_CHECKING, Any

from devicecore.liveness.probe_result import Probeable, ProbeResult, failure, probe
from devicecore.liveness.target import resolve

if TYPE_CHECKING:
    from collections.abc import Sequence
    from importlib.machinery import ModuleSpec

# Their first import reads hundreds of megabytes, which is no fault of a probe.
SLOW_IMPORTS = frozenset({"torch", "onnxruntime", "openvino", "tensorflow", "jax", "paddle"})

_MOST_DESCRIPTORS = 256


def answer(job: dict[str, Any]) -> None:
    """Write the report that *job* asks for, and end this process."""
    tell = _Teller()
    _end_with_parent()
    sys.meta_path.insert(0, _SlowImports(tell))
    try:
        prober: Probeable = resolve(job["target"])()
        tell(timeout_s=getattr(prober, "probe_timeout_s", None))
        report = probe(prober, job["framework"])
    except BaseException as error:  # noqa: BLE001 - importing a plug-in may raise anything
        report = ProbeResult(failure(error))
    tell(report=report.to_json())
    os._exit(0)  # a runtime's own clean-up may take seconds, or crash


class _Teller:
    """Writes lines of JSON to the parent, in the place of this process's stdout.

    What a probe prints goes nowhere then, and what it starts inherits neither end.
    """

    def __init__(self) -> None:
        self._descriptor = os.dup(1)
        nowhere = os.open(os.devnull, os.O_RDWR)
        os.dup2(nowhere, 1)

    def __call__(self, **facts: Any) -> None:
        line = (json.dumps(facts, default=str) + "\n").encode()
        while line:
            line = line[os.write(self._descriptor, line) :]


class _SlowImports:
    """Tells the parent when the import of a large framework begins and ends."""

    def __init__(self, tell: _Teller) -> None:
        self._tell = tell

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: Any = None
    ) -> ModuleSpec | None:
        if name not in SLOW_IMPORTS:
            return None
        spec = PathFinder.find_spec(name, path, target)
        if spec is None or spec.loader is None:
            return None
        execute = spec.loader.exec_module

        def timed(module: Any) -> None:
            self._tell(importing=name, at=time.monotonic())
            try:
                execute(module)
            finally:
                self._tell(importing="", at=time.monotonic())

        spec.loader.exec_module = timed  # type: ignore[method-assign]
        return spec


def _end_with_parent() -> None:
    """Let this process, and all that it starts, end when its parent does.

    A process of its own watches where there can be one: native code that hangs may hold the GIL.
    """
    watched = os.dup(0)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    if not hasattr(os, "fork"):
        threading.Thread(target=_watch, args=(watched,), daemon=True).start()
    elif os.fork() == 0:
        os.dup2(watched, 0)
        os.closerange(1, _MOST_DESCRIPTORS)  # or the parent would wait for this one as well
        _watch(0)


def _watch(parent: int) -> None:
    with suppress(OSError):
        while os.read(parent, 1):
            pass
        if hasattr(os, "killpg"):
            os.killpg(0, signal.SIGKILL)
    os._exit(1)
