"""OpenCV's functions migrated by a plan while somebody else's tests run.

As a plug-in of pytest (``-p benchmarks.intercepting``) it is active in a whole test run. The folder
that ``INTERCEPTED`` names says by `write` how, and gets what each process found.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attrs import frozen

from devicecore.migrate import PipelineMigrator, default_strategies

if TYPE_CHECKING:
    from collections.abc import Callable

    from devicecore.kernels import Exactness
    from devicecore.migrate.plan.optimization_plan import Residency

FOLDER = "INTERCEPTED"
_HOW = "how.json"
_FOUND = "found"


def plan_for(accept: Exactness, residency: Residency, frames: tuple[str, ...]) -> dict[str, Any]:
    """Return a plan by which torch computes every function of OpenCV's that it can, on the CPU.

    Args:
        accept: The loosest promise that is taken.
        residency: Where results stay.
        frames: The functions that are named besides where results stay inside of functions.
    """
    named = frames if residency == "scoped" else ()
    options = {"device": "cpu", "kernel": "torch", "accept": accept, "residency": residency}
    return dict.fromkeys([*default_strategies().names(["cv2"]), *named], options)


def write(folder: Path, plan: dict[str, Any], verify: int) -> None:
    """Write how a test run is migrated."""
    text = json.dumps({"plan": plan, "verify": verify})
    folder.joinpath(_HOW).write_text(text, encoding="utf-8")
    folder.joinpath(_FOUND).mkdir()


def read(folder: Path) -> list[dict[str, Any]]:
    """Return what each process of a test run found: its report, and what it could not undo."""
    found = sorted(folder.joinpath(_FOUND).iterdir())
    return [json.loads(path.read_text(encoding="utf-8")) for path in found]


def pytest_configure(config: Any) -> None:
    """Activate the plan before any test is imported."""
    import cv2
    import torch  # one thread each: test processes share the cores

    torch.set_num_threads(1)
    folder = Path(os.environ[FOLDER])
    how = json.loads(folder.joinpath(_HOW).read_text(encoding="utf-8"))
    before = list(vars(cv2).items())
    migrator = PipelineMigrator(how["plan"], verify=how["verify"]).activate()
    replaced = [name for name, value in before if vars(cv2)[name] is not value]

    def finish() -> None:
        migrator.deactivate()
        after = list(vars(cv2).items())
        found = {
            "replaced": len(replaced),
            # Also what came while the tests ran, and names that changed their places.
            "not put back": sorted(
                {old[0] for old, new in zip(before, after, strict=False) if not _is_same(old, new)}
                | {name for name, _ in (*before[len(after) :], *after[len(before) :])}
            ),
            **migrator.report().as_dict(),
        }
        path = folder / _FOUND / f"{os.getpid()}.json"
        path.write_text(json.dumps(found), encoding="utf-8")

    config.pluginmanager.register(_Told(finish))


@frozen
class _Told:
    """Writes what a process found, while whoever waits for its tests still waits for it."""

    finish: Callable[[], None]

    def pytest_sessionfinish(self) -> None:
        self.finish()


def _is_same(one: tuple[str, Any], other: tuple[str, Any]) -> bool:
    return one[0] == other[0] and one[1] is other[1]
