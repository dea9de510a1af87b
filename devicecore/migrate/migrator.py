"""`PipelineMigrator`: patches an unchanged program as a plan says, and restores it."""

from __future__ import annotations

import logging
import sys
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, Self, TypeVar, cast

from devicecore import config
from devicecore.errors import DeviceError, PlanError, UnknownDeviceError
from devicecore.fork import rearm_after_fork
from devicecore.migrate.calls.call_site import CallPolicy, CallSite
from devicecore.migrate.calls.compare import within_tolerance
from devicecore.migrate.calls.guard import Guard
from devicecore.migrate.calls.report import MigrationReport, Tally, merge_rows
from devicecore.migrate.calls.strategy import MoveInputStrategy
from devicecore.migrate.calls.worker_tallies import WorkerTallies
from devicecore.migrate.module_watches import ModuleWatches
from devicecore.migrate.patching.blocks import UsedInBlocks, during_calls
from devicecore.migrate.patching.injector import PatchInjector
from devicecore.migrate.patching.kernel_context import InsideKernels
from devicecore.migrate.patching.program_line import warn
from devicecore.migrate.patching.referrers import find_imported
from devicecore.migrate.patching.torchvision_dispatch import TorchvisionDispatch
from devicecore.migrate.patching.tracker import UNSET, SparseContextTracker
from devicecore.migrate.patching.ufuncs import keep_ufunc_facts
from devicecore.migrate.patching.wrapper import UniversalWrapper
from devicecore.migrate.plan.keys import ANY_NUMBER, Keys
from devicecore.migrate.plan.optimization_plan import OptimizationPlan
from devicecore.migrate.plan.targets import PatchTarget, find_definition, get_function, resolve
from devicecore.migrate.plan.unmatched_keys import find_doubts, find_unmatched
from devicecore.migrate.recording import consumers
from devicecore.migrate.recording.current import call_on_host
from devicecore.migrate.strategies import default_strategies
from devicecore.resolution import resolve as resolve_device

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from types import ModuleType

    from devicecore.migrate.calls.report import CallStats
    from devicecore.migrate.calls.strategy import Strategy
    from devicecore.migrate.patching.tracker import CallPath
    from devicecore.migrate.patching.wrapper import Handler
    from devicecore.migrate.plan.keys import Key, Segments
    from devicecore.migrate.plan.optimization_plan import PlanEntry
    from devicecore.migrate.plan.targets import Located, Pending, Resolved
    from devicecore.migrate.strategies.registry import StrategyRegistry

    _Patch = tuple[Any, str, Callable[..., Any]]

_OFF: Final = "DEVICECORE_MIGRATE=off: nothing is migrated"
Function = TypeVar("Function", bound="Callable[..., Any]")


class PipelineMigrator(UsedInBlocks):
    """Runs the calls that a plan names on other devices, while it is active.

    Used as ``with PipelineMigrator(plan):``, as a decorator, or by `activate` and `deactivate`.
    The program's functions are replaced by wrappers, and put back exactly as they were.

    Args:
        plan: An `OptimizationPlan`, or what its ``load`` takes: a file, or a mapping.
        registry: How functions are computed; None for `default_strategies`.
        strict: Whether an error takes the place of the original function's answer.
        verify: Of how many migrated calls of a path one is also computed by the original function;
            a path whose results differ by more than the plan accepts is not migrated any more. 0
            for none.
        allow_imports: The packages that may be imported because the plan names them.

    Raises:
        PlanError: The plan is none.

    Examples:
        >>> import cv2, numpy as np
        >>> from devicecore.migrate import PipelineMigrator
        >>> plan = {"cv2.resize": {"device": "cpu", "kernel": "torch"}}
        >>> with PipelineMigrator(plan) as migrator:
        ...     small = cv2.resize(np.zeros((8, 8), np.uint8), (4, 4))
        >>> [(row.path, row.migrated) for row in migrator.report().rows]
        [('cv2:resize', 1)]
    """

    _is_told_of_main = False  # by nobody: its names are there, or looked for by `refresh`

    def __init__(
        self,
        plan: OptimizationPlan | str | os.PathLike[str] | Mapping[str, Any],
        registry: StrategyRegistry | None = None,
        *,
        strict: bool = False,
        verify: int = 0,
        allow_imports: Iterable[str] = (),
    ) -> None:
        super().__init__()
        self.plan: OptimizationPlan = (
            plan if isinstance(plan, OptimizationPlan) else OptimizationPlan.load(plan)
        )
        self.registry: StrategyRegistry = registry or default_strategies()
        self._records = self._has_recorded_frames()
        self._allowed = tuple(allow_imports)
        self._tracker = SparseContextTracker()
        self._policy = CallPolicy(strict, verify, within_tolerance, Guard(), InsideKernels)
        off_plan = self._off_plan if self._records else None
        self._wrapper = UniversalWrapper(self._tracker, self._decide, off_plan)
        self._injector = PatchInjector()
        self._consumers = PatchInjector()  # of functions that the plan does not name
        self._dispatched = TorchvisionDispatch()
        self._keys: Keys[Located] = Keys(())
        self._patched: set[Segments] = set()
        self._strategies: dict[Segments, Strategy] = {}
        self._watches = ModuleWatches()
        self._sites: dict[tuple[str, Key], CallSite | None] = {}
        entries = [(str(e.key), e.device, e.options) for e in self.plan.entries]
        self._workers = WorkerTallies(repr(entries), self._counted_here)
        self._found: Resolved | None = None  # before it was ever active
        self.after_fork()
        rearm_after_fork(self)

    def after_fork(self) -> None:
        """Make a lock that no thread of the parent holds."""
        self._lock = threading.RLock()

    def activate(self) -> Self:
        """Replace the functions that the plan names; activated twice is to be deactivated twice.

        Names of modules that are not imported yet are looked for when they are. Nothing happens
        where the environment says ``DEVICECORE_MIGRATE=off``.

        Raises:
            PlanError: A name of the plan means nothing, or more than one thing, or what nobody can
                replace.

        Warns:
            RuntimeWarning: No call can be for a key: there is no such package, or no such class.
                The processes that this one starts do not say it again.
        """
        self._begin(object())
        return self

    def deactivate(self) -> None:
        """Put all functions back, once this was called as often as `activate`; then do nothing.

        After an interrupt it puts back what is still replaced.
        """
        self._release(None)

    def _begin(self, user: object) -> None:
        self._import_strategies()
        try:
            with self._lock:
                self._users.add(user)  # from here on there is something to be put back
                is_first = len(self._users) == 1
                if is_first:
                    self._workers.begin()
                    if config.load().migrates:
                        self._patch_all()
                    else:
                        logging.getLogger("devicecore").info(_OFF)
            if is_first:
                self._warn_of(self._found.missing if self._found else ())
        except BaseException:  # an interrupt, too, leaves nothing half done
            self._end(user)
            raise

    def _warn_of(self, missing: Iterable[Pending]) -> None:
        """Warn of keys that nothing can be for, once for all processes of the program."""
        if not self._workers.is_to_warn():
            return
        for each, text in find_doubts(
            missing, self.registry, is_told_of_main=self._is_told_of_main
        ):
            self._warn(each, f"{self.plan.source}: {text}")

    def _warn(self, _: PlanEntry, text: str, /) -> None:
        warn(text)

    def _release(self, user: object) -> list[str]:
        with self._lock:
            if len(self._users) <= 1:
                self._watches.end()
                self._consumers.restore_all()
                self._injector.restore_all()
                self._dispatched.forget_unused()
            self._users.remove(user)
        return []  # the injectors have warned

    def refresh(self) -> None:
        """Look again for names of the plan that were not there when they were last looked for."""
        self._import_strategies()
        with self._lock:
            if self._injector.is_applied:
                self._refresh()
                self._watches.ask_for_pending()

    def report(self) -> MigrationReport:
        """Return what became of the calls so far, those of workers among them."""
        own = [site.tally.row() for site in list(self._sites.values()) if site is not None]
        rows = merge_rows([*own, *self._workers.received()[1]])
        held = self._injector.held_elsewhere() if len(self._users) else {}
        texts = [f"{name}: {text}" for name, texts in held.items() for text in texts]
        return MigrationReport(rows, texts, self._unmatched())

    def __call__(self, function: Function) -> Function:
        """Return *function* with the plan active during each of its calls.

        For a generator function that is from its first step until it ends or is closed, also while
        its caller runs.

        Raises:
            TypeError: It is an asynchronous generator function, which may never be closed.
        """
        return cast("Function", during_calls(self, function))

    def _counted_here(self) -> tuple[list[str], list[CallStats]]:
        sites = list(self._sites.items())
        rows = [site.tally.since_fork() for _, site in sites if site is not None]
        return [str(key) for (_, key), _ in sites], [row for row in rows if row.calls]

    def _unmatched(self) -> list[str]:
        told = self._workers.received()[0]
        keys = {key for _, key in list(self._sites)}
        keys |= {entry.key for entry in self.plan.entries if str(entry.key) in told}
        return find_unmatched(self.plan, keys, self._found, self.registry) if self._found else []

    def _has_recorded_frames(self) -> bool:
        return any(entry.options.residency == "scoped" for entry in self.plan.entries)

    def _off_plan(self, _: Segments, /) -> Handler:
        return call_on_host

    def _patch_all(self) -> None:
        # What was there when it was last active may have been imported anew since.
        self._injector, self._consumers, self._patched = PatchInjector(), PatchInjector(), set()
        self._found = None
        self._refresh()
        self._consumers.apply_all()
        self._injector.apply_all()
        self._watches.ask_for_pending()

    def _refresh(self) -> None:
        """Find what the plan names in what is imported now, and patch what is new.

        Raises:
            PlanError: An entry is wrong; the others are patched all the same, if this is not the
                first time.
        """
        found = self._found = resolve(self.plan, self._allowed, self.registry, earlier=self._found)
        self._keys = Keys(found.entries)
        new: dict[Segments, _Patch] = {}
        for wanted in found.targets:
            is_frame = bool(wanted.inner_of) or self._strategy(wanted.target) is None
            self._add_patch(new, wanted.target, is_frame=is_frame)
        if self._records or any(self._strategy(each.target) is None for each in found.targets):
            # A frame's line is for what runs inside; and what is recorded may come to all of them.
            for target in map(
                find_definition, self._known_targets(self.registry.packages_in_frames)
            ):
                self._add_patch(new, target, is_frame=self._strategy(target) is None)
        self._injector.add_all(new.values())
        self._patched |= new.keys()
        if self._records:
            for holder, name, handler in consumers.find_consumers(self._patched):
                self._consumers.add(holder, name, self._wrapper.of_consumer(handler))
        used = consumers.PACKAGES if self._records else frozenset[str]()
        self._watches.begin(found, self.registry.modules_in_frames | used, self._imported)
        self._forget_decisions()
        for error in found.errors:
            raise error

    def _imported(self, _module: ModuleType) -> None:
        self.refresh()

    def _import_strategies(self, _module: object = None) -> None:
        """Import what computes functions, while nobody waits for us: others may import the same."""
        for package in find_imported(self.registry.packages):
            self.registry.names([package])

    def _add_patch(
        self, new: dict[Segments, _Patch], target: PatchTarget, *, is_frame: bool
    ) -> None:
        frame = target.canonical
        if frame in self._patched or frame in new:
            return
        if target.module.partition(".")[0] == "cv2":
            from devicecore.cv import native  # noqa: F401 - it takes OpenCV's own, before ours come
        make = self._wrapper.of_frame(frame) if is_frame else self._wrapper.of_leaf(frame)
        function = get_function(target)
        make = self._dispatched.found_by_itself(function, keep_ufunc_facts(function, frame, make))
        new[frame] = (*target.holder(), make)

    def _known_targets(self, packages: frozenset[str]) -> Iterator[PatchTarget]:
        """Yield the functions in imported modules of some packages that have a strategy."""
        for name in self.registry.names(find_imported(packages)):
            parts = name.split(".")
            lengths = range(len(parts) - 1, 0, -1)
            modules = (".".join(parts[:length]) for length in lengths)
            module = next((each for each in modules if each in sys.modules), None)
            if module is None:
                continue
            target = PatchTarget(module, name.removeprefix(f"{module}."))
            with suppress(PlanError):  # another version of the package may not have it
                target.holder()
                yield target

    def _forget_decisions(self) -> None:
        nodes = [self._tracker.root]
        while nodes:
            node = nodes.pop()
            node.decision = UNSET
            nodes += list(node.children.values())

    def _strategy(self, target: PatchTarget) -> Strategy | None:
        """Return what computes a function, also if it has another name where it is at home."""
        found = self.registry.find(target.module, target.qualname)
        if found is None:
            function = get_function(target)
            known = self._known_targets(self.registry.packages)
            aliases = (each for each in known if get_function(each) is function)
            others = (self.registry.find(each.module, each.qualname) for each in aliases)
            # Other classes may inherit a method that means something only for some.
            found = next((each for each in others if getattr(each, "is_of_heirs", True)), None)
        if found is not None:
            self._strategies[target.canonical] = found
        return found

    def _decide(self, node: CallPath) -> CallSite | None:
        """Return what becomes of the calls of a path, or None if the plan is not for them."""
        located = self._keys.find(node.path)
        if located is None:
            return None
        # Of paths without end only the last frames are told apart.
        path = node.key if node.is_kept else "/".join((ANY_NUMBER, *node.frame))
        entry = located.entry
        known = path, entry.key
        if known not in self._sites:
            strategy = self._strategies.get(node.frame)
            site = None if entry.is_original else self._site(path, entry, strategy)
            with self._lock:
                self._sites.setdefault(known, site)
            self._workers.told()
        return self._sites[known]

    def _site(self, path: str, entry: PlanEntry, strategy: Strategy | None) -> CallSite | None:
        device, reason = None, ""
        try:
            device = resolve_device(entry.device, framework="torch").device
        except (DeviceError, UnknownDeviceError) as error:
            reason = str(error)
        if device is not None and device.device_type == "CPU" and entry.options.kernel is None:
            return None  # "auto" where there is nothing better
        if strategy is not None and entry.options.kernel == "native":
            return None  # the originals themselves
        source = entry.device if device is None else device.name
        tally = Tally(path, entry.device if device is None else device.label)
        tally.told = self._workers.told
        how = strategy or MoveInputStrategy()
        given = (device, source, entry.options, how, self._policy, tally, reason)
        if not self._records:
            return CallSite(*given)
        from devicecore.migrate.recording.recorded_calls import site_in_frames  # it imports numpy

        return site_in_frames(*given)
