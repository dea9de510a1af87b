"""The child's side of a probe: build the factory, ask it, write the answer, leave at once."""

from __future__ import annotations

import json
import os
from importlib import import_module
from operator import attrgetter
from pathlib import Path
from typing import Any

from devicecore.liveness.report import Prober, Report, ask, failure


def resolve(target: str) -> Any:
    """Return what *target* names, as ``"module:qualified.name"``.

    Raises:
        ImportError: The module cannot be imported.
        AttributeError: It has no such name.
    """
    module, _, name = target.partition(":")
    return attrgetter(name)(import_module(module))


def answer(job: dict[str, Any]) -> None:
    """Write the report that *job* asks for, and end this process."""
    try:
        prober: Prober = resolve(job["target"])()
        report = ask(prober, job["framework"])
    except Exception as error:  # noqa: BLE001 - importing a plug-in may raise anything
        report = Report(failure(error))
    result = Path(job["result"])
    part = result.with_suffix(".part")
    part.write_text(json.dumps(report.to_json(), default=str), encoding="utf-8")
    part.replace(result)
    os._exit(0)  # a runtime's own clean-up may take seconds, or crash
