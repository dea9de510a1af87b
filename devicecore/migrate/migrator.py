"""`PipelineMigrator`: makes an unchanged program do what a plan says, and puts it back."""

from __future__ import annotations

import functools
import inspect
import logging
import sys
import threading
from typing import TYPE_CHECKING, Any, Self, TypeVar

from devicecore import config
from devicecore.errors import DeviceError
from devicecore.ledger import default_ledger
from devicecore.migrate.guard import Guard
from devicecore.migrate.importing import watch_imports
from devicecore.migrate.injector import PatchInjector
from devicecore.migrate.keys import Keys
from devicecore.migrate.plan import AUTO, OptimizationPlan
from devicecore.migrate.report import Report, Tally
from devicecore.migrate.site import Care, Site
from devicecore.migrate.strategies import default_strategies
from devicecore.migrate.strategy import MoveInputStrategy
from devicecore.migrate.targets import Target, resolve
from devicecore.migrate.tracker import UNSET, SparseContextTracker
from devicecore.migrate.wrapper import KERNEL, UniversalWrapper
from devicecore.resolution import resolve as resolve_device

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterable, Mapping
    from types import TracebackType

    from devicecore.device import Device
    from devicecore.migrate.importing import Watch
    from devicecore.migrate.keys import Segments
    from devicecore.migrate.registry import StrategyRegistry
    from devicecore.migrate.targets import Located, Resolved
    from devicecore.migrate.tracker import Node

Function = TypeVar("Function", bound="Callable[..., Any]")


class PipelineMigrator:
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
        >>> migrator.report().rows[0].migrated
        1
    """

    def __init__(
        self,
        plan: OptimizationPlan | str | os.PathLike[str] | Mapping[str, Any],
        registry: StrategyRegistry | None = None,
        *,
        strict: bool = False,
        verify: int = 0,
        allow_imports: Iterable[str] = (),
    ) -> None:
        self.plan: OptimizationPlan = (
            plan if isinstance(plan, OptimizationPlan) else OptimizationPlan.load(plan)
        )
        self.registry: StrategyRegistry = registry or default_strategies()
        self._allowed = tuple(allow_imports)
        self._tracker = SparseContextTracker()
        inside_kernels = functools.partial(self._tracker.inside, KERNEL)
        self._care = Care(strict, verify, _keeps, Guard(), inside_kernels)
        self._wrapper = UniversalWrapper(self._tracker, self._decide)
        self._injector = PatchInjector()
        self._lock = threading.RLock()
        self._count = 0
        self._keys: Keys[Located] = Keys(())
        self._patched: dict[Segments, Target] = {}
        self._watches: dict[str, Watch] = {}
        self._tallies: dict[str, Tally] = {}

    def activate(self) -> Self:
        """Replace the functions that the plan names; activated twice is to be deactivated twice.

        Names of modules that are not imported yet are looked for when they are. Nothing happens
        where the environment says ``DEVICECORE_MIGRATE=off``.

        Raises:
            PlanError: A name of the plan means nothing, or more than one thing.
        """
        with self._lock:
            if self._count == 0:
                if config.load().migrates:
                    self._refresh()
                    self._injector.apply_all()
                else:
                    _logger().info("DEVICECORE_MIGRATE=off: nothing is migrated")
            self._count += 1
        return self

    def deactivate(self) -> None:
        """Put all functions back, once this was called as often as `activate`; then do nothing."""
        with self._lock:
            self._count = max(self._count - 1, 0)
            if self._count == 0:
                for watch in self._watches.values():
                    watch.remove()
                self._watches.clear()
                self._injector.restore_all()

    def refresh(self) -> None:
        """Look again for names of the plan that were not there when they were last looked for."""
        with self._lock:
            if self._count:
                self._refresh()

    def report(self) -> Report:
        """Return what became of the calls so far."""
        rows = [tally.row() for tally in list(self._tallies.values())]
        rows.sort(key=lambda row: row.device_s + row.host_s, reverse=True)
        held = self._injector.held_elsewhere() if self._count else {}
        return Report(rows, [f"{name}: {text}" for name, texts in held.items() for text in texts])

    def __enter__(self) -> Self:
        """Activate it; see `activate`."""
        return self.activate()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Deactivate it; see `deactivate`."""
        self.deactivate()

    def __call__(self, function: Function) -> Function:
        """Return *function* with the plan active during each of its calls."""
        wrapped: Any
        if inspect.iscoroutinefunction(function):

            @functools.wraps(function)
            async def wrapped(*args: Any, **kwargs: Any) -> Any:
                with self:
                    return await function(*args, **kwargs)

        else:

            @functools.wraps(function)
            def wrapped(*args: Any, **kwargs: Any) -> Any:
                with self:
                    return function(*args, **kwargs)

        return wrapped  # type: ignore[no-any-return]

    def _refresh(self, _module: object = None) -> None:
        """Find what the plan names in what is imported now, and patch what is new."""
        with self._lock:
            found = resolve(self.plan, self._allowed)
            self._keys = Keys(found.entries)
            for wanted in found.targets:
                is_frame = bool(wanted.inner_of) or self._strategy(wanted.target) is None
                self._patch(wanted.target, is_frame=is_frame)
            if any(self._strategy(each.target) is None for each in found.targets):
                self._patch_what_frames_call()
            self._watch(found)
            self._forget_decisions()

    def _patch(self, target: Target, *, is_frame: bool) -> None:
        frame = target.canonical
        if frame in self._patched:
            return
        make = self._wrapper.of_frame(frame) if is_frame else self._wrapper.of_leaf(frame)
        self._injector.add(*target.holder(), make)
        self._patched[frame] = target

    def _patch_what_frames_call(self) -> None:
        """Patch all functions that have a strategy: a frame's line is for what runs inside."""
        loaded = {name.partition(".")[0] for name in list(sys.modules)}
        for name in self.registry.names(loaded):
            module, _, function = name.rpartition(".")
            if hasattr(sys.modules.get(module), function):
                self._patch(Target(module, function), is_frame=False)

    def _watch(self, found: Resolved) -> None:
        names = {pending.module for pending in found.pending if not pending.is_loaded}
        names |= set(self.registry.packages)
        for name in names - self._watches.keys():
            self._watches[name] = watch_imports(name, self._refresh)

    def _forget_decisions(self) -> None:
        nodes = [self._tracker.root]
        while nodes:
            node = nodes.pop()
            node.decision = UNSET
            nodes += node.children.values()

    def _strategy(self, target: Target) -> Any:
        return self.registry.find(target.module, target.qualname)

    def _decide(self, node: Node) -> Site | None:
        """Return what becomes of the calls of a path, or None if the plan is not for them."""
        located = self._keys.find(node.path)
        if located is None or located.entry.is_original:
            return None
        entry = located.entry
        strategy = self._strategy(self._patched[node.frame]) or MoveInputStrategy()
        device = self._device(entry.device, node.key)
        if device is None:
            return None
        with self._lock:
            tally = self._tallies.setdefault(node.key, Tally(node.key, device.label))
        return Site(device, entry.options, strategy, self._care, tally)

    def _device(self, name: str, path: str) -> Device | None:
        """Return a device of the plan, or None where it does not work here."""
        try:
            request = AUTO if name == AUTO else name
            return resolve_device(request, framework="torch").device
        except DeviceError as error:
            if self._care.is_strict:
                raise
            default_ledger().record(path, name, "CPU:0", str(error))
            return None


def _keeps(promise: Any, found: Any, expected: Any) -> bool:
    from devicecore.cv.quarantine import keeps  # it imports torch, which a plan may do without

    return keeps(promise, found, expected)


def _logger() -> logging.Logger:
    return logging.getLogger("devicecore")
