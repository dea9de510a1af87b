"""`SampleRecorder`: records the frames in the samples of a dataset.

Nothing of it needs a device: whoever gets the samples computes what was recorded, there or by the
original functions.
"""

from __future__ import annotations

import gc
import logging
import time
import weakref
from collections import deque
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from attrs import frozen

from devicecore import config
from devicecore.errors import DeviceError, PlanError
from devicecore.kernels.exactness import PROMISES
from devicecore.migrate.calls.arrays import count_pixels
from devicecore.migrate.calls.attempt import Attempt
from devicecore.migrate.calls.call_site import CallSite
from devicecore.migrate.calls.report import Tally, merge_rows
from devicecore.migrate.calls.strategy import MoveInputStrategy
from devicecore.migrate.calls.worker_tallies import WorkerTallies
from devicecore.migrate.loader.error_text import describe_error
from devicecore.migrate.loader.placeholders import name_classes
from devicecore.migrate.migrator import PipelineMigrator
from devicecore.migrate.plan.optimization_plan import Options
from devicecore.migrate.plan.targets import resolve
from devicecore.migrate.plan.unmatched_keys import find_unmatched
from devicecore.migrate.recording.checkpoint import Checkpoint
from devicecore.migrate.recording.current import OPEN, RECORDING, call_on_host, current_recording
from devicecore.migrate.recording.materialize import materialize
from devicecore.migrate.recording.nodes import compute_on_host
from devicecore.migrate.recording.opencv_random import AGAIN
from devicecore.migrate.recording.recorded_calls import REFUSALS
from devicecore.migrate.recording.recording import Recording
from devicecore.migrate.recording.refusal_reason import why_not_recorded
from devicecore.runtime import host_cpu

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable

    import numpy as np

    from devicecore.migrate.calls.report import CallStats
    from devicecore.migrate.calls.strategy import Strategy
    from devicecore.migrate.patching.wrapper import Handler
    from devicecore.migrate.plan.keys import Segments
    from devicecore.migrate.plan.optimization_plan import OptimizationPlan, PlanEntry
    from devicecore.migrate.recording.buffer import Buffer
    from devicecore.migrate.recording.nodes import Node, Primitive
    from devicecore.migrate.strategies.registry import StrategyRegistry

    Array = np.ndarray[Any, Any]

SAMPLES: Final = "samples"
"""What the samples themselves are called beside the paths of calls."""

COLLATION: Final = "collation"
"""What putting samples together is called there; it is counted where it fails."""

_IN_OBJECTS = (
    "its arrays are in objects ({}), and only those in lists, tuples and dicts are recorded"
)
_IN_A_THREAD = "another thread than the one that loads the sample has called it"


def loosest_options(plan: OptimizationPlan) -> Options:
    """Return the options of the key of a plan that accepts the loosest promise."""
    return max(
        (entry.options for entry in plan.entries if not entry.is_original),
        key=lambda options: PROMISES.index(options.accept),
        default=Options(),
    )


@frozen(eq=False)
class SampleCallSite(CallSite):
    """The calls of a path in a sample: recorded while a sample is loaded, else the program's own.

    Attributes:
        primitive: What records them; None where that cannot be, as of frames.
    """

    primitive: Primitive | None = None

    def call(
        self, original: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        """Return what stands for the result of the original, or the result."""
        if self.strategy.runs_original:
            return original(*args, **kwargs)
        recording = current_recording()
        if recording is None or recording.owner is not self.policy:
            return self._outside(original, args, kwargs)
        wanted = self.options.min_pixels
        is_large = not wanted or count_pixels(args, kwargs) >= wanted
        if self.primitive is not None and is_large:
            start = time.perf_counter()
            result = recording.record(self.primitive, args, kwargs, self.options)
            if result is not None:
                self.tally.migrated(0.0, 0, host=time.perf_counter() - start)
                return result
        start = time.perf_counter()
        found = call_on_host(original, args, kwargs)
        # Only now: of calls that nobody can compute, the original has its own words.
        seconds = time.perf_counter() - start
        if is_large:
            reason = why_not_recorded(recording, self.primitive, args, kwargs, self.options)
        else:
            reason = f"fewer than {wanted} pixels"
        reason = self.tally.bounded(reason)
        self.tally.fell_back(seconds, reason)
        if is_large:
            self.attempt.refuse(reason)
            self.attempt.record(reason)
        return found

    def _outside(
        self, original: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        """Let the original answer a call that is in no sample, or in a thread of one."""
        start = time.perf_counter()
        found = call_on_host(original, args, kwargs)
        if _is_open(self.policy):
            self.tally.fell_back(time.perf_counter() - start, _IN_A_THREAD)
        return found


class SampleRecorder(PipelineMigrator):
    """Records the frames that a plan names in the samples of a dataset.

    Args:
        plan: The plan.
        registry: How functions are computed.
        keep: Returns the values that an array of the program has now.
        strict: Whether a call that no kernel computes is an error.
        loader: What tells the loader that it is for from others, in all processes.
    """

    def __init__(
        self,
        plan: OptimizationPlan,
        registry: StrategyRegistry | None,
        keep: Callable[[Array], Node],
        *,
        strict: bool = False,
        loader: str = "",
    ) -> None:
        super().__init__(plan, registry, strict=strict)
        self._workers = WorkerTallies(loader, self._counted_here)
        self._keep = keep
        self._options = loosest_options(plan)
        self._attempt = Attempt(SAMPLES, host_cpu().label)
        self._reason = ""  # of the last sample that could not be recorded
        self._seconds: float | None = None  # that the last sample took, while it is not counted
        self._last: Recording | None = None
        self._kept: list[weakref.ref[Buffer]] = []
        self._samples = Tally(SAMPLES, host_cpu().label)
        self._collation = Tally(COLLATION, host_cpu().label)
        self._untold: list[CallStats] = []  # of batches that nobody gets
        self._in_threads: dict[Segments, Tally] = {}  # of frames, which begin anew in each

    def taken(self) -> list[CallStats]:
        """Return what became of samples, and of the calls in them, since this was last called."""
        sites = [site.tally for site in list(self._sites.values()) if site is not None]
        threads = list(self._in_threads.values())
        rows = [tally.taken() for tally in (self._samples, self._collation, *sites, *threads)]
        return [row for row in rows if row.calls]

    @property
    def matched(self) -> frozenset[str]:
        """The keys of the plan that were for calls in this process."""
        return frozenset(str(key) for _, key in list(self._sites))

    def warn_for_workers(self) -> None:
        """Warn of keys that nothing can be for, in the place of workers that will record."""
        if config.load().migrates:
            with suppress(PlanError):  # they raise it
                self._warn_of(resolve(self.plan, registry=self.registry).missing)

    def unmatched(self, told: Collection[str]) -> list[str]:
        """Return which keys of the plan were for no call, and why that may be.

        Args:
            told: Those that were for calls of other processes.
        """
        keys = {key for _, key in list(self._sites)}
        keys |= {entry.key for entry in self.plan.entries if str(entry.key) in told}
        found = self._found
        if found is None:  # only others have recorded
            with suppress(PlanError):  # they have raised it, or know better
                found = resolve(self.plan, registry=self.registry)
        return find_unmatched(self.plan, keys, found, self.registry)

    def tell_of_error(self) -> None:
        """Tell the process that has the loader what a batch that it does not get has counted."""
        self._untold = merge_rows([*self._untold, *self.taken()])
        self._workers.told(at_once=True)

    def collation_failed(self, collation: str, error: Exception) -> None:
        """Count samples that cannot be put together.

        Args:
            collation: The name of what puts them together.
            error: What it has raised.
        """
        self._collation.fell_back(0.0, f"{collation} raised {describe_error(error)}")

    def sample(
        self, load: Callable[[Any], Any], index: Any, *, repeats: bool, count: int = 1
    ) -> Any:
        """Return a sample with a `LazyArray` in the place of each array that was only recorded.

        Args:
            load: Returns the sample of an index.
            index: Which.
            repeats: Whether it can be loaded anew if it cannot be recorded.
            count: How many samples it is, where a dataset loads those of a batch at once.
        """
        start = time.perf_counter()
        try:
            return self._loaded(load, index, repeats=repeats, count=count)
        except Exception as error:  # of the program's dataset, which may raise anything
            is_ours = isinstance(error, DeviceError)  # which takes the host's answer's place
            reason = (
                describe_error(error) if is_ours else f"the dataset raised {describe_error(error)}"
            )
            self._samples.fell_back(time.perf_counter() - start, reason)
            raise

    def _loaded(self, load: Callable[[Any], Any], index: Any, *, repeats: bool, count: int) -> Any:
        if self._attempt.off:
            start = time.perf_counter()
            found = load(index)
            spent = time.perf_counter() - start
            reason = f"those before could not be recorded: {self._reason}"
            self._samples.fell_back(spent, reason)
            return found
        self._seconds = None
        saved = Checkpoint((load, index), {})
        recording = self._last = Recording(
            compute_on_host, self._keep, options=self._options, owner=self._policy, count=count
        )
        token = RECORDING.set(recording)
        start = time.perf_counter()
        OPEN.add(recording)  # its threads may have its arrays, too
        try:
            found = load(index)
        except Exception as error:
            is_of_opencv = type(error).__module__ == "cv2"
            if not repeats or not recording.calls:
                raise
            if not is_of_opencv and not isinstance(error, REFUSALS):
                raise
            reason = describe_error(error)
        else:
            self._attempt.succeeded()
            is_end = not repeats and found is index  # of a stream
            self._seconds = None if is_end else time.perf_counter() - start
            return found
        finally:
            recording.is_over = True
            OPEN.discard(recording)
            RECORDING.reset(token)
        saved.put_back()
        before = AGAIN.set(deque(recording.drawn))
        try:
            found = self._attempt.instead(reason, partial(load, index))  # outside of all samples
        finally:
            AGAIN.reset(before)
        self._samples.fell_back(time.perf_counter() - start, reason)
        self._warn_anew(reason)
        return found

    def _warn_anew(self, reason: str) -> None:
        self._reason = reason
        _warn("no more are" if self._attempt.off else "loaded anew without that", reason)

    def find_kept(self, load: Callable[[Any], Any], sample: Any, *, is_recorded: bool) -> None:
        """Give a dataset ordinary arrays in the place of those that it keeps from the last sample.

        Args:
            load: What has loaded that.
            sample: What others get of it, which may have some in objects.
            is_recorded: Whether they get some that are only recorded.
        """
        before, self._kept = self._kept, []
        last, self._last = self._last, None
        reason = ""
        if last is not None and (count := len(last.alive())):
            materialize(None, last, [sample])
            if not is_recorded and len(last.alive()) < count:
                reason = _IN_OBJECTS.format(", ".join(name_classes(sample)))
            materialize(None, last, [load])
            self._kept = list(map(weakref.ref, last.alive()))
        self._count(reason)
        # By now a generator has others in its names; what is still alive is kept for good.
        kept = [memory for each in before if (memory := each()) is not None]
        if kept and (kept := _still(kept)):
            OPEN.add("arrays that a sample has kept")
            if not self._attempt.off:
                self._reason = "its arrays are kept where they are not found"
                self._attempt.switch_off(self._reason)
                _warn("no more are", self._reason)
            _put_on_host(kept)

    def _count(self, reason: str) -> None:
        """Count a sample that was loaded in one go."""
        seconds, self._seconds = self._seconds, None
        if seconds is not None and reason:
            self._samples.fell_back(seconds, reason)
        elif seconds is not None:
            self._samples.migrated(0.0, 0, host=seconds)

    def end_batch(self) -> None:
        """Compute what is still kept somewhere, before memory is used again."""
        last, self._last = self._last, None  # of a sample that raised an error
        if last is not None:
            _put_on_host(last.alive())
        _put_on_host(memory for each in self._kept if (memory := each()) is not None)
        self._kept = []

    def _counted_here(self) -> tuple[list[str], list[CallStats]]:
        return sorted(self.matched), self._untold  # the rest goes with the batches

    def _has_recorded_frames(self) -> bool:
        return True

    def _off_plan(self, frame: Segments, /) -> Handler:
        def handler(
            original: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
        ) -> Any:
            entry = self._entry_around(frame) if OPEN and current_recording() is None else None
            if entry is None or not _is_open(self._policy):
                return call_on_host(original, args, kwargs)
            start = time.perf_counter()
            found = call_on_host(original, args, kwargs)
            tally = self._in_threads.setdefault(frame, Tally("/".join(frame), entry.device))
            tally.fell_back(time.perf_counter() - start, _IN_A_THREAD)
            return found

        return handler

    def _entry_around(self, frame: Segments) -> PlanEntry | None:
        """Return an entry for calls of a function inside of others, where threads are not."""
        for wanted in self._found.targets if self._found else ():
            target = wanted.target.canonical
            if target == frame or target not in self._strategies:
                for entry in wanted.leaf_of:
                    if not entry.is_original:
                        return entry
        return None

    def _site(self, path: str, entry: PlanEntry, strategy: Strategy | None) -> CallSite | None:
        if strategy is not None and entry.options.kernel == "native":
            return None
        how = strategy or MoveInputStrategy()
        primitive = getattr(strategy, "recorded", None)
        tally = Tally(path, entry.device)
        return SampleCallSite(
            None, entry.device, entry.options, how, self._policy, tally, "", primitive
        )


def _is_open(owner: object) -> bool:
    """Return whether a sample is being loaded in some thread."""
    return any(getattr(each, "owner", None) is owner for each in tuple(OPEN))


def _warn(words: str, reason: str) -> None:
    message = "a sample could not be recorded, %s: %s"
    logging.getLogger("devicecore").warning(message, words, reason)


def _still(kept: list[Buffer]) -> list[Buffer]:
    """Return those that are in use also after objects that only have each other are gone."""
    found = list(map(weakref.ref, kept))
    kept.clear()
    gc.collect(1)
    return [memory for each in found if (memory := each()) is not None]


def _put_on_host(kept: Iterable[Buffer]) -> None:
    for memory in kept:
        memory.on_host()
