"""`LoaderTallies`: counts the batches of a loader, its samples and their calls."""

from __future__ import annotations

import logging
import re
from typing import TYPE_CHECKING, Any, Final

from devicecore.errors import RefusedCallError
from devicecore.migrate.calls.report import MigrationReport, Tally, merge_rows
from devicecore.migrate.calls.worker_tallies import WorkerTallies
from devicecore.migrate.loader.error_text import describe_error
from devicecore.migrate.loader.sample_recorder import COLLATION, SAMPLES
from devicecore.runtime import host_cpu

if TYPE_CHECKING:
    from collections.abc import Iterable

    from devicecore.migrate.calls.report import CallStats
    from devicecore.migrate.loader.datasets import SampleLoading
    from devicecore.migrate.plan.optimization_plan import OptimizationPlan

WORKERS: Final = "workers"
"""What workers are called beside the paths of calls; they are counted where they die."""

_ORDER: Final = (SAMPLES, COLLATION, WORKERS)
_WHERE: Final = "where samples are loaded; processes and threads of a dataset do not count"
_NOTHING_INSIDE: Final = f"no function inside of it that can be recorded, {_WHERE}"
_FIX: Final = (
    "let the plan name functions that have a kernel, or what calls them, and call them in the "
    "thread that loads the sample; or leave strict out"
)
_DEAD: Final = re.compile(r"DataLoader worker \(pid(?:\(s\))? ([\d, ]+)\)")


class LoaderTallies:
    """Counts what becomes of samples, of the calls in them, and of workers.

    Args:
        plan: What says which calls.
        loading: What loads samples, also in workers.
        batches: What became of the batches.
    """

    def __init__(self, plan: OptimizationPlan, loading: SampleLoading, batches: Tally) -> None:
        self._plan = plan
        self._loading = loading
        self._batches = batches
        self._tallies: dict[str, Tally] = {}
        self._matched: set[str] = set()
        self._has_begun = False
        self._workers = WorkerTallies(loading.name, lambda: ([], []))

    def begin(self) -> None:
        """Count an epoch."""
        self._has_begun = True
        self._workers.begin()

    def count(self, rows: Iterable[CallStats], matched: Iterable[str]) -> None:
        """Count what became of calls where samples are loaded.

        Args:
            rows: The calls.
            matched: The keys of the plan that they are for.
        """
        self._matched.update(matched)
        for row in rows:
            self._tallies.setdefault(row.path, Tally(row.path, row.device)).add(row)

    def collation_failed(self, function: Any, error: Exception) -> None:
        """Count samples that the program's own function cannot put together."""
        name = getattr(function, "__qualname__", type(function).__qualname__)
        module = getattr(function, "__module__", "")
        self._failed(COLLATION, f"{module}:{name} raised {describe_error(error)}")

    def worker_failed(self, error: Exception, workers: Iterable[Any]) -> None:
        """Count a worker that has died, if an error of torch's loader says so.

        Args:
            error: The error.
            workers: The processes that there were.
        """
        found = _DEAD.match(str(error)) if isinstance(error, RuntimeError) else None
        if found is None:
            return
        pids = {int(each) for each in found[1].split(",")}
        numbers = [str(place) for place, each in enumerate(workers) if each.pid in pids]
        which = f"worker {', '.join(numbers)}" if numbers else "a worker"
        self._failed(WORKERS, f"{which} has died: {str(error).splitlines()[0]}")

    def _failed(self, path: str, reason: str) -> None:
        tally = self._tallies.setdefault(path, Tally(path, host_cpu().label))
        tally.fell_back(0.0, reason)

    def report(self) -> MigrationReport:
        """Return what became so far of all."""
        rows = [self._batches.row(), *self._rows()]
        told = self._matched | self._workers.received()[0]
        unmatched = self._loading.recorder.unmatched(told) if self._has_begun else ()
        return MigrationReport([row for row in rows if row.calls], unmatched=unmatched)

    def _rows(self) -> list[CallStats]:
        own = [tally.row() for tally in self._tallies.values()]
        told = self._workers.received()[1]
        if told:  # only then, as the order may be another one
            own = merge_rows([*own, *told])
        first = [row for path in _ORDER for row in own if row.path == path]
        return [*first, *(row for row in own if row.path not in _ORDER)]

    def say_that_nothing_is_recorded(self, device: str, *, is_strict: bool) -> None:
        """Warn of an epoch in which nothing was computed on the device.

        Args:
            device: Its name.
            is_strict: Whether it is an error.

        Raises:
            RefusedCallError: It is strict.
        """
        reason = "no sample had anything that the plan names and that a kernel computes"
        reason = f"{reason} ({self._why()})"
        if is_strict:
            raise RefusedCallError("DeviceLoader", device, {"the migrator": reason}, _FIX)
        logging.getLogger("devicecore").warning("DeviceLoader has nothing to do: %s", reason)

    def _why(self) -> str:
        rows = self._rows()
        refused = [f"{row.path}: {reason}" for row in rows for reason in row.reasons]
        if refused:
            return "; ".join(refused)
        if any(row.path != SAMPLES for row in rows):
            return "the samples asked for the values of all that was recorded"
        called = self._matched | self._workers.received()[0]
        keys = [str(each.key) for each in self._plan.entries if not each.is_original]
        if inside := [key for key in keys if key in called]:
            return f"{', '.join(inside)} was called, and {_NOTHING_INSIDE}"
        return f"nothing of {', '.join(keys)} was called {_WHERE}"
